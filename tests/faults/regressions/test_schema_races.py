"""Writers that change the schema beside one another: no column goes, no file gets unreadable."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from hoodie_ds.errors import WriteConflictError
from hoodie_ds.sink.replay_guard import BatchId
from tests.faults.writers import MISSING, MODE, SEVERAL, Place
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, trips

FIRST = trips(("0", "x", 0, 0.0), ("0", "y", 0, 0.0))


@pytest.fixture(params=TYPES)
def place(request: pytest.FixtureRequest) -> Place:
    found = Place({**TRIPS, BUCKETS: "1", TYPE: request.param, MODE: SEVERAL})
    found.table.upsert(FIRST)
    return found


def with_column(rows: pa.Table, name: str, values: Sequence[object], kind: pa.DataType) -> pa.Table:
    return rows.append_column(pa.field(name, kind), pa.array(values, kind))


def test_a_later_commit_without_a_new_column_took_it_away(place: Place) -> None:
    adding = place.begin(with_column(trips(("1", "x", 1, 1.0)), "extra", ["dear"], pa.string()))
    plain = place.begin(trips(("2", "y", 1, 1.0)))
    one, two = adding.write(), plain.write()
    adding.writer.commit([one])
    plain.writer.commit([two])
    assert place.table.schema.names[-1] == "extra"
    place.table.upsert(trips(("3", "x", 3, 3.0)))  # rewrites the base file that has the values
    assert place.read("id", "extra") == [
        ("0", None), ("0", None), ("1", "dear"), ("2", None), ("3", None)
    ]  # fmt: skip


def test_a_column_with_two_types_made_the_table_unreadable(place: Place) -> None:
    text = place.begin(with_column(trips(("1", "x", 1, 1.0)), "v", ["text"], pa.string()))
    number = place.begin(with_column(trips(("2", "y", 1, 1.0)), "v", [1], pa.int64()))
    one, two = text.write(), number.write()
    text.writer.commit([one])
    with pytest.raises(WriteConflictError, match=r"'v' is string in the table and int64"):
        number.writer.commit([two])
    assert place.read("id", "v") == [("0", None), ("0", None), ("1", "text")]
    place.table.upsert(with_column(trips(("2", "y", 1, 1.0)), "v", ["1"], pa.string()))
    assert len(place.read("id")) == 4


@pytest.mark.parametrize("wide_first", [True, False])
def test_of_two_widths_the_wider_one_stays(place: Place, wide_first: bool) -> None:
    wide = place.begin(with_column(trips(("1", "x", 1, 1.0)), "n", [2**40], pa.int64()))
    narrow = place.begin(with_column(trips(("2", "y", 1, 1.0)), "n", [7], pa.int32()))
    one, two = wide.write(), narrow.write()
    # The instant that holds the schema must be the newest by time: here `narrow` is.
    if wide_first:
        wide.writer.commit([one])
        narrow.writer.commit([two])
    else:
        narrow.writer.commit([two])
        with pytest.raises(WriteConflictError, match=r"'n' as int32, not int64"):
            wide.writer.commit([one])
        place.table.upsert(wide.rows)
    assert place.table.schema.field("n").type == pa.int64()
    assert place.read("id", "n")[2:] == [("1", 2**40), ("2", 7)]


def test_a_column_added_by_an_earlier_instant_that_commits_later(place: Place) -> None:
    """The later instant holds the table's schema, without the column."""
    adding = place.begin(with_column(trips(("1", "x", 1, 1.0)), "extra", ["dear"], pa.string()))
    one = adding.write()
    plain = place.begin(trips(("2", "y", 1, 1.0)))
    plain.writer.commit([plain.write()])
    with pytest.raises(WriteConflictError, match="has no column 'extra'"):
        adding.writer.commit([one])
    assert "extra" not in place.table.schema.names


def test_an_earlier_instant_that_adds_nothing_commits_beside_a_later_column(place: Place) -> None:
    plain = place.begin(trips(("2", "y", 1, 1.0)))
    two = plain.write()
    adding = place.begin(with_column(trips(("1", "x", 1, 1.0)), "extra", ["dear"], pa.string()))
    adding.writer.commit([adding.write()])
    plain.writer.commit([two])
    assert place.read("id", "extra")[-2:] == [("1", "dear"), ("2", None)]


def test_columns_that_differ_only_in_case_conflict(place: Place) -> None:
    one = place.begin(with_column(trips(("1", "x", 1, 1.0)), "Tip", [1.0], pa.float64()))
    two = place.begin(with_column(trips(("2", "y", 1, 1.0)), "tip", [1.0], pa.float64()))
    messages = one.write(), two.write()
    one.writer.commit([messages[0]])
    with pytest.raises(WriteConflictError, match="'Tip' and 'tip'"):
        two.writer.commit([messages[1]])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("names", [["id"], ["ts"]])
def test_first_batches_that_disagree_about_a_key(kind: str, names: list[str]) -> None:
    """Both create the table: what is an integer to one is a floating point number to the other."""
    fresh = Place({**TRIPS, BUCKETS: "1", TYPE: kind, MODE: SEVERAL})
    kinds = {"id": pa.int32(), "city": pa.string(), "ts": pa.int32(), "fare": pa.float64()}
    whole = pa.table({"id": [1], "city": ["x"], "ts": [1], "fare": [1.0]}, pa.schema(kinds))
    broken = {**kinds, **dict.fromkeys(names, pa.float64())}
    other = pa.table({"id": [2], "city": ["y"], "ts": [1], "fare": [1.0]}, pa.schema(broken))
    one, two = fresh.begin(whole), fresh.begin(other)
    messages = one.write(), two.write()
    one.writer.commit([messages[0]])
    with pytest.raises(WriteConflictError, match=rf"'{names[0]}' is int32 in the table and double"):
        two.writer.commit([messages[1]])
    assert fresh.read("id") == [(1,)]


@pytest.mark.parametrize("kind", TYPES)
def test_an_old_driver_of_a_single_writer_takes_no_column_away(kind: str) -> None:
    """It was thought dead; another one wrote to other file groups meanwhile."""
    place = Place({**TRIPS, BUCKETS: "1", TYPE: kind})
    place.table.upsert(FIRST)
    new = place.begin(with_column(trips(("1", "x", 1, 1.0)), "extra", ["dear"], pa.string()))
    old = place.begin(trips(("2", "y", 1, 1.0)))
    new.writer.commit([new.write()])
    old.writer.commit([old.write()])
    assert place.read("id", "extra")[-2:] == [("1", "dear"), ("2", None)]


@pytest.mark.parametrize("kind", TYPES)
def test_an_instant_of_several_batches_keeps_a_column_of_another_writer(kind: str) -> None:
    """Which came before its instant was opened, by a driver that was thought dead."""
    place = Place({**TRIPS, BUCKETS: "1", TYPE: kind})
    place.table.upsert(FIRST)
    new = place.begin(with_column(trips(("1", "x", 1, 1.0)), "extra", ["dear"], pa.string()))
    span = {"hoodie.streaming.batches.per.commit": "2"}
    first = place.begin(trips(("2", "y", 1, 1.0)), **span)
    new.writer.commit([new.write()])
    first.writer.commit([first.write(BatchId("q", 0))])
    second = place.begin(trips(("4", "y", 2, 2.0)), **span, **{MISSING: "true"})
    second.writer.commit([second.write(BatchId("q", 1))])
    assert place.read("id", "extra")[2:] == [("1", "dear"), ("2", None), ("4", None)]

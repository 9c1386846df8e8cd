"""Columns that Hudi finds by number are found by it, at whatever door one comes in."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest

from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.inspection.findings import Kind
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.reader.table_stream import TableStream
from tests.faults.writers import Place
from tests.schema_on_read import ROWS, Columns, alter, changed, write_without_option, written
from tests.schema_on_read import TRIPS as COLUMNS
from tests.tables import TRIPS, TYPE, TYPES, VERSION, found, trips
from tests.tiers import by_day, in_turn

CDC = "hoodie.table.cdc.enabled"
LOGGING = "hoodie.table.cdc.supplemental.logging.mode"
BLOCKS = "hoodie.logfile.data.block.format"
OPTION = r"hoodie\.schema\.on\.read\.enable"
RENAMED = changed(COLUMNS, {"fare": "cost"})
SWAPPED = changed(COLUMNS, {"ts": "fare", "fare": "ts"})
DROPPED = COLUMNS[:3]
BACK = [*DROPPED, (9, "fare", "double")]
RETYPED = [*DROPPED, (8, "fare", "string")]
ADDED = [*COLUMNS[:2], (9, "extra", "string"), *COLUMNS[2:]]
MOVED = [COLUMNS[3], *COLUMNS[:3]]


PLACES = [f"{kind} {version}" for kind, version in product(TYPES, "69")]


@pytest.fixture(params=by_day(PLACES, {f"{TYPES[0]} 9", f"{TYPES[1]} 6"}))
def place(request: pytest.FixtureRequest) -> Place:
    return written(*request.param.split()).copy()


@pytest.mark.parametrize(
    ("versions", "rows"),
    [
        ([COLUMNS, RENAMED], [{"cost": 1.0}, {"cost": 2.0}]),
        ([COLUMNS, SWAPPED], [{"ts": 1.0, "fare": 1}, {"ts": 2.0, "fare": 1}]),
        ([COLUMNS, DROPPED], [{"id": "1", "city": "x"}, {"id": "2", "city": "x"}]),
        ([COLUMNS, DROPPED, BACK], [{"fare": None}, {"fare": None}]),
        ([COLUMNS, RETYPED], [{"fare": "1.0"}, {"fare": "2.0"}]),
        ([COLUMNS, RENAMED, COLUMNS], [{"fare": 1.0}, {"fare": 2.0}]),
    ],
    ids=["renamed", "swapped", "dropped", "dropped and added", "retyped", "renamed back"],
)
def test_columns_are_found_by_number(
    place: Place, versions: list[Columns], rows: list[dict[str, object]]
) -> None:
    alter(place.storage, *versions)
    assert place.table.schema.names[5:] == [name for _, name, _ in versions[-1]]
    found = place.table.read(columns=list(rows[0])).to_pylist()
    assert sorted(found, key=str) == rows
    assert place.table.inspect.verify()


@pytest.mark.parametrize(
    ("versions", "wanted", "expected"),
    [
        ([COLUMNS, RENAMED], "cost > 1.5", ["2"]),
        ([COLUMNS, SWAPPED], "fare = 1", ["1", "2"]),
        ([COLUMNS, SWAPPED], "ts = 2", ["2"]),
        ([COLUMNS, DROPPED, BACK], "fare IS NULL", ["1", "2"]),
        ([COLUMNS, DROPPED, BACK], "fare = 1", []),
        ([COLUMNS, RETYPED], "fare = '2.0'", ["2"]),
    ],
)
def test_what_files_say_of_old_names_rules_no_row_out(
    place: Place, versions: list[Columns], wanted: str, expected: list[str]
) -> None:
    alter(place.storage, *versions)
    rows = place.table.read(columns=["_hoodie_record_key"], filter=wanted).to_pylist()
    assert sorted(row["_hoodie_record_key"] for row in rows) == expected


@pytest.mark.parametrize("versions", [[COLUMNS, ADDED], [COLUMNS, MOVED]], ids=["added", "moved"])
def test_names_that_have_stayed_are_read(place: Place, versions: list[Columns]) -> None:
    alter(place.storage, *versions)
    assert found(place.table) == ROWS
    assert place.table.schema.names[5:] == [name for _, name, _ in versions[-1]]
    assert place.table.inspect.verify()
    assert not [text for text in place.table.inspect.show().remarks if "renamed" in text]


READS: dict[str, Callable[[Place], pa.Table]] = {
    "read": lambda place: place.table.read(),
    "scan": lambda place: pa.table(place.table.scan()),
    "time travel": lambda place: place.table.read(as_of="2100-01-01"),
    "incremental": lambda place: place.table.read_incremental("000"),
    "changes": lambda place: _images(place.table.read_changes("000")),
    "stream": lambda place: _streamed(place),
    "rows of the command": lambda place: pa.concat_tables(place.table.inspect.rows()),
}


def _images(changes: pa.Table) -> pa.Table:
    return pa.Table.from_pylist([json.loads(row["after"]) for row in changes.to_pylist()])


def _streamed(place: Place) -> pa.Table:
    stream = TableStream(place.storage, ReadOptions.parse({"path": "/t"}))
    return Scanner(stream.query("000", stream.newest("000"))).to_table()


@pytest.mark.parametrize(("door", "place"), in_turn(READS, PLACES), indirect=["place"])
def test_every_door_reads_by_number(place: Place, door: str) -> None:
    alter(place.storage, COLUMNS, RENAMED)
    rows = READS[door](place).select(["id", "cost"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [("1", 1.0), ("2", 2.0)]


def test_a_past_between_two_names_has_its_own(place: Place) -> None:
    again = changed(COLUMNS, {"fare": "price"})
    alter(place.storage, COLUMNS, RENAMED, again)
    for instant, columns in zip(
        place.table.timeline.commits, (COLUMNS, RENAMED, again), strict=True
    ):
        then = place.table.read(as_of=instant.time)
        assert then.column_names[5:] == [name for _, name, _ in columns]
        assert sorted(then.column(columns[-1][1]).to_pylist(), key=str) == [1.0, 2.0]


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_log_blocks_have_the_names_of_their_time(blocks: str) -> None:
    place = Place({**TRIPS, TYPE: TYPES[1], VERSION: "9", BLOCKS: blocks})
    place.table.upsert(trips(*ROWS))
    place.table.upsert(trips(("1", "x", 2, 3.0)))
    place.table.delete(trips(("2", "x", 2, None)))
    alter(place.storage, COLUMNS, RENAMED)
    assert place.read("id", "ts", "cost") == [("1", 2, 3.0)]
    assert place.table.read(columns=["cost"], filter="cost = 3").num_rows == 1


@pytest.mark.parametrize("logging", ["DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"])
def test_logged_changes_have_the_names_of_now(logging: str) -> None:
    place = Place({**TRIPS, TYPE: TYPES[0], VERSION: "9", CDC: "true", LOGGING: logging})
    place.table.upsert(trips(*ROWS))
    place.table.upsert(trips(("1", "x", 2, 3.0)))
    alter(place.storage, COLUMNS, changed(COLUMNS, {"fare": "ts", "ts": "n"}))
    begin = place.table.timeline.commits[0].ended
    (change,) = place.table.read_changes(begin).to_pylist()
    for image, values in (("before", (1, 1.0)), ("after", (2, 3.0))):
        row = json.loads(change[image])
        assert (row["n"], row["ts"]) == values
        assert "fare" not in row


def test_a_diff_has_the_columns_of_the_later_state(place: Place) -> None:
    first = place.table.timeline.commits[-1].time
    place.table.upsert(trips(("1", "x", 2, 3.0)))
    alter(place.storage, COLUMNS, [*COLUMNS[:3], (8, "cost", "string")])
    last = place.table.timeline.commits[-1].time
    for diff in (place.table.inspect.diff(first), place.table.inspect.diff(first, last)):
        assert (diff.inserted, diff.updated, diff.deleted) == (0, 1, 0)
        assert diff.rows.column("cost").to_pylist() == ["1.0", "3.0"]


def test_keys_are_not_those_of_a_column_that_took_their_name(place: Place) -> None:
    columns = [*COLUMNS[:3], (8, "other", "string")]
    place.table.upsert(trips(("3", "x", 1, 3.0)))
    swapped = changed(columns, {"id": "other", "other": "id"})
    alter(place.storage, COLUMNS, columns, swapped)
    rows = place.table.read(columns=["other"], filter="id = '3.0'").to_pylist()
    assert rows == [{"other": "3"}]


def test_a_merge_by_another_column_is_another_one() -> None:
    """The ordering field is another column now; the process has merged by the former one."""
    place = Place({**TRIPS, TYPE: TYPES[1], VERSION: "9"})
    for ts, number in ((2, 1), (1, 3)):
        place.table.upsert(pa.table({"id": ["1"], "city": ["x"], "ts": [ts], "n": [number]}))
    assert place.read("ts", "n") == [(2, 1)]
    columns = [*COLUMNS[:3], (8, "n", "long")]
    alter(place.storage, columns, changed(columns, {"ts": "n", "n": "ts"}))
    assert place.read("ts", "n") == [(3, 1)]


def test_a_log_of_delta_needs_the_names_of_now(place: Place) -> None:
    alter(place.storage, COLUMNS, RENAMED)
    with pytest.raises(UnsupportedTableError, match=rf"{OPTION} \('fare' is 'cost'\)"):
        place.table.sync_delta()


def test_a_job_without_the_option_ends_no_refusal(place: Place) -> None:
    """Its commit has no numbers, while files hold the renamed column as it was."""
    alter(place.storage, COLUMNS, RENAMED)
    write_without_option(place.storage)
    before = place.storage.files
    for door in (place.table.read, lambda: place.table.upsert(trips(*ROWS))):
        with pytest.raises(UnsupportedTableError, match=rf"'fare' is 'cost'\).*{OPTION}=true"):
            door()
    assert place.storage.files == before


def test_a_job_without_the_option_goes_on_with_columns_that_stayed(place: Place) -> None:
    alter(place.storage, COLUMNS, ADDED)
    write_without_option(place.storage)
    assert found(place.table) == ROWS


@pytest.mark.parametrize(
    "history", [b"", b"{", b"[]", b'{"schemas": [{"version_id": 7}]}', b'{"schemas": 7}']
)
def test_without_a_history_nothing_tells_that_names_have_stayed(
    place: Place, history: bytes
) -> None:
    alter(place.storage, COLUMNS, ADDED, history=history)
    with pytest.raises(UnsupportedTableError, match=r"\.hoodie/\.schema does not say under which"):
        place.table.read()


def test_a_key_has_the_same_row_under_the_new_name(place: Place) -> None:
    alter(place.storage, COLUMNS, RENAMED)
    (event,) = place.table.inspect.trace("1")
    assert event.row == {"id": "1", "city": "x", "ts": 1, "cost": 1.0}


def test_the_command_names_a_history_that_is_lost(place: Place) -> None:
    time = alter(place.storage, COLUMNS, RENAMED, history=b"")
    (remark,) = place.table.inspect.show().remarks
    (finding,) = place.table.inspect.verify().findings
    assert finding.kind is Kind.NOT_CHECKED
    assert remark == f"{finding.message}; {finding.remedy}"
    assert time in remark
    assert not place.table.inspect.verify()
    assert place.table.inspect.report().count("hoodie.schema.on.read.enable") > 1


def test_once_the_change_is_taken_back_all_is_as_before(place: Place) -> None:
    time = alter(place.storage, COLUMNS, RENAMED)
    place.table.rollback(time)
    assert found(place.table) == ROWS
    place.table.upsert(trips(("1", "x", 9, 9.0)))
    assert found(place.table) == [("1", "x", 9, 9.0), ROWS[1]]

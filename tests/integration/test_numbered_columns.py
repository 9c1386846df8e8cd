"""Writes and services keep the numbers of columns, by which Hudi's schema on read finds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import count, product
from typing import TypeAlias

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    HoodieError,
    OptionError,
    SchemaError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.schema_on_read import LATEST_SCHEMA_KEY
from hoodie_ds.testing import CRASHES, MemoryStorage, sweep
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import read_commit
from tests.faults.writers import BESIDE_OTHERS, Place
from tests.schema_on_read import TRIPS as COLUMNS
from tests.schema_on_read import alter, changed, numbered, stored_history
from tests.tables import BUCKETS, KEY, ORDERING, TRIPS, TYPE, TYPES, VERSION, timeline_of, trips
from tests.tiers import by_day, in_turn

COW, MOR = TYPES
DUE = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
}
CDC = "hoodie.table.cdc.enabled"
INDEX = "hoodie.index.type"
SMALL = "hoodie.parquet.small.file.limit"
SHORT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
OPTION = r"hoodie\.schema\.on\.read\.enable"
RENAMED = changed(COLUMNS, {"fare": "cost"})
AGAIN = changed(COLUMNS, {"fare": "price"})
FIRST, SECOND = ("1", "x", 1, 1.0), ("2", "x", 1, 2.0)
NEW, THIRD = ("1", "x", 2, 9.0), ("3", "x", 1, 3.0)
Row: TypeAlias = tuple[str, str | None, int, float | None]
BEFORE_AND_AFTER = ([FIRST, SECOND], [NEW, SECOND])
PLACES = [f"{kind} {version}" for kind, version in product(TYPES, "689")]


def costs(*rows: Row) -> pa.Table:
    return trips(*rows).rename_columns([name for _, name, _ in RENAMED])


@cache
def _altered(kind: str, version: str) -> Place:
    made = Place({**TRIPS, TYPE: kind, VERSION: version})
    made.table.upsert(trips(FIRST, SECOND))
    alter(made.storage, COLUMNS, RENAMED)
    return made


@pytest.fixture(params=by_day(PLACES, {f"{COW} 9", f"{MOR} 6"}))
def place(request: pytest.FixtureRequest) -> Place:
    return _altered(*request.param.split()).copy()


WRITES: dict[str, tuple[Callable[[HoodieTable], object], list[tuple[object, ...]]]] = {
    "upsert": (lambda table: table.upsert(costs(NEW)), [NEW, SECOND]),
    "insert": (lambda table: table.insert(costs(THIRD)), [FIRST, SECOND, THIRD]),
    "overwrite": (lambda table: table.overwrite(costs(THIRD)), [THIRD]),
    "delete": (lambda table: table.delete(costs(NEW)), [SECOND]),
    "delete by filter": (lambda table: table.delete(where="cost = 1"), [SECOND]),
    "update": (lambda table: table.update({"cost": 9.0, "ts": 2}, where="cost = 1"), [NEW, SECOND]),
    "delete partitions": (lambda table: table.delete_partitions(["x"]), []),
    "rescale": (lambda table: table.rescale_buckets(4), [FIRST, SECOND]),
}


@pytest.mark.parametrize(("door", "place"), in_turn(WRITES, PLACES), indirect=["place"])
def test_every_write_keeps_the_numbers(place: Place, door: str) -> None:
    write, rows = WRITES[door]
    known = stored_history(place.storage)
    write(place.table)
    _check(place, rows, {"cost": known[0]["version_id"]})
    assert stored_history(place.storage) == known
    alter(place.storage, RENAMED, AGAIN)
    assert place.read("id", "city", "ts", "price") == rows
    assert HoodieTable("/t", storage=place.storage).inspect.verify()


def _check(place: Place, rows: list[tuple[object, ...]], versions: Mapping[str, int]) -> None:
    """Compare rows, and see that the newest commit has the numbers, and a history of its own."""
    ((name, version),) = versions.items()
    assert place.read("id", "city", "ts", name) == rows
    newest = place.table.timeline.commits[-1]
    assert json.loads(read_commit(place.storage, newest).extra["latest_schema"]) == next(
        one for one in stored_history(place.storage) if one["version_id"] == version
    )
    ended = f"_{newest.completion_time}" if newest.completion_time else ""
    assert f".hoodie/.schema/{newest.time}{ended}.schemacommit" in place.storage.files


DROPPED = COLUMNS[:3]
FARES = [("1", 9.0), ("2", None)]


def test_a_new_column_has_a_number_that_none_had(place: Place) -> None:
    """Else a column that was dropped comes back in one that has its name now."""
    alter(place.storage, RENAMED, DROPPED)
    known = stored_history(place.storage)
    place.table.upsert(trips(NEW))
    assert place.read("id", "fare") == FARES
    newest = place.table.timeline.commits[-1]
    now, *before = stored_history(place.storage)
    assert before == known
    assert (now["version_id"], now["max_column_id"]) == (int(newest.time), 9)
    assert now["fields"][-1] == {"id": 9, "name": "fare", "optional": True, "type": "double"}
    assert json.loads(read_commit(place.storage, newest).extra["latest_schema"]) == now
    service = place.table.compact if place.opts[TYPE] == MOR else place.table.upsert
    service(DUE if place.opts[TYPE] == MOR else trips(NEW))
    assert place.read("id", "fare") == FARES
    assert stored_history(place.storage) == [now, *before]
    alter(place.storage, [*DROPPED, (9, "fare", "double")], [*DROPPED, (9, "cost", "double")])
    assert place.read("id", "cost") == FARES


def test_columns_that_two_writers_add_are_a_conflict(place: Place) -> None:
    place.opts |= BESIDE_OTHERS
    one = costs(NEW).append_column("a", pa.array(["a"]))
    other = costs(("5", "y", 1, 5.0)).append_column("b", pa.array(["b"]))
    begun = place.begin(one)
    message = begun.write()
    place.table.upsert(other)
    with pytest.raises(WriteConflictError, match="the columns of"):
        begun.writer.commit([message])
    place.table.upsert(one)
    assert place.read("id", "a", "b") == [*(("1", "a", None), ("2", None, None), ("5", None, "b"))]
    numbers = [field["id"] for field in stored_history(place.storage)[0]["fields"]]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize(
    ("values", "options", "error"),
    [
        (pa.array([0], pa.timestamp("us")), {}, SchemaError),
        (pa.array([0]), {"hoodie.streaming.batches.per.commit": "2"}, OptionError),
    ],
)
def test_columns_that_cannot_be_numbered_are_refused(
    place: Place, values: pa.Array, options: dict[str, str], error: type[HoodieError]
) -> None:
    before = place.storage.files
    with pytest.raises(error, match="number"):
        place.begin(costs(NEW).append_column("new", values), **options)
    assert place.storage.files == before


@pytest.mark.parametrize("logging", ["DATA_BEFORE_AFTER", "OP_KEY_ONLY"])
def test_logged_images_of_old_rows_have_the_names_of_now(logging: str) -> None:
    how = {CDC: "true", "hoodie.table.cdc.supplemental.logging.mode": logging}
    place = Place({**TRIPS, TYPE: COW, VERSION: "9", **how})
    place.table.upsert(trips(FIRST, SECOND))
    begin = place.table.timeline.commits[-1].ended
    alter(place.storage, COLUMNS, RENAMED)
    place.table.upsert(costs(NEW))
    (change,) = place.table.read_changes(begin).to_pylist()
    images = [json.loads(change[image]) for image in ("before", "after")]
    assert [(image["ts"], image["cost"]) for image in images] == [(1, 1.0), (2, 9.0)]


@pytest.mark.parametrize(
    "left_out", [(BUCKETS,), (BUCKETS, KEY, ORDERING)], ids=["keys", "no keys"]
)
def test_small_files_are_filled_by_the_numbers(left_out: tuple[str, ...]) -> None:
    opts = {key: value for key, value in TRIPS.items() if key not in left_out}
    place = Place({**opts, TYPE: COW, VERSION: "9", INDEX: "SIMPLE", SMALL: "1000000"})
    place.table.insert(trips(FIRST, SECOND))
    alter(place.storage, COLUMNS, RENAMED)
    place.table.insert(costs(THIRD))
    (stat,) = read_commit(place.storage, place.table.timeline.commits[-1]).stats
    assert stat.num_writes == 3
    assert place.read("id", "city", "ts", "cost") == [FIRST, SECOND, THIRD]


@pytest.mark.parametrize("kind", TYPES)
def test_services_rewrite_files_by_the_numbers(kind: str) -> None:
    index = {INDEX: "SIMPLE"} if kind == COW else {}
    place = Place({**TRIPS, TYPE: kind, VERSION: "9", **index})
    place.table.upsert(trips(FIRST, SECOND))
    place.table.upsert(trips(NEW))
    alter(place.storage, COLUMNS, RENAMED)
    version = stored_history(place.storage)[0]["version_id"]
    assert (place.table.cluster if kind == COW else place.table.compact)(DUE)
    _check(place, [NEW, SECOND], {"cost": version})
    alter(place.storage, RENAMED, AGAIN)
    assert place.read("id", "city", "ts", "price") == [NEW, SECOND]


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("altered", [[COLUMNS, RENAMED], [COLUMNS, RENAMED, AGAIN]])
def test_a_compaction_writes_the_names_of_its_plan(version: str, altered: list[object]) -> None:
    """Hudi looks for columns there by the numbers that they had at the time of the plan."""
    place = Place({**TRIPS, TYPE: MOR, VERSION: version})
    place.table.upsert(trips(FIRST, SECOND))
    place.table.upsert(trips(NEW))
    *before, last = altered
    if len(before) > 1:
        alter(place.storage, *before)  # type: ignore[arg-type]
    parsed = WriteOptions.parse({**place.opts, **DUE, "path": "/t"})
    context = ServiceContext(parsed, place.storage, place.clock, place.ids)
    assert Compactor(context).schedule()
    alter(place.storage, *before[-1:], last)  # type: ignore[arg-type]
    place.table.compact(DUE)
    assert not place.table.timeline.pending_compactions
    assert place.read("id", "city", "ts", last[-1][1]) == [NEW, SECOND]  # type: ignore[index]
    assert place.table.inspect.verify()


def test_a_table_altered_meanwhile_is_a_conflict(place: Place) -> None:
    place.opts |= BESIDE_OTHERS
    batch = place.begin(costs(NEW))
    message = batch.write()
    alter(place.storage, RENAMED, AGAIN)
    with pytest.raises(WriteConflictError, match="ALTER TABLE"):
        batch.writer.commit([message])
    assert place.read("id", "city", "ts", "price") == [FIRST, SECOND]


@pytest.mark.parametrize("change", [{"id": "key"}, {"city": "town"}])
def test_keys_and_paths_of_renamed_columns_are_refused(
    place: Place, change: dict[str, str]
) -> None:
    key = {"id": "city", "city": "id"} if "id" in change else {"city": "ts", "ts": "city"}
    kinds = [(number, key.get(name, name), kind) for number, name, kind in RENAMED]
    alter(place.storage, RENAMED, kinds)
    before = place.storage.files
    with pytest.raises(UnsupportedTableError, match="was renamed, so stored keys"):
        place.table.delete(costs(NEW))
    assert place.storage.files == before


def test_a_history_that_is_lost_stops_writes_and_plans(place: Place) -> None:
    for path in [path for path in place.storage.files if "/.schema/" in path]:
        place.storage.delete(path)
    before = place.storage.files
    table = place.table
    service = table.compact if place.opts[TYPE] == MOR else table.cluster
    for door in (partial(table.upsert, costs(NEW)), partial(service, DUE)):
        with pytest.raises(UnsupportedTableError, match=OPTION):
            door()
    assert place.storage.files == before


def test_a_history_of_a_write_that_failed_goes(place: Place) -> None:
    """Else its version would count once its time is archived; Hudi deletes it too."""
    known, time = stored_history(place.storage), following(str(place.table.timeline.latest_time))
    failed = json.dumps({"schemas": [numbered(int(time), AGAIN), *known]}).encode()
    for suffix in ("", ".inflight"):
        place.storage.put_if_absent(f".hoodie/.schema/{time}.schemacommit{suffix}", failed)
    place.clock.advance(1000)
    place.table.upsert(costs(NEW))
    assert not [path for path in place.storage.files if f"/{time}" in path]
    _check(place, [NEW, SECOND], {"cost": known[0]["version_id"]})
    assert stored_history(place.storage) == known


@pytest.mark.parametrize("version", ["6", "9"])
def test_the_history_outlives_the_archived_commits(version: str) -> None:
    place = _altered(COW, version).copy()
    altered = place.table.timeline.commits[-1].time
    version_id = stored_history(place.storage)[0]["version_id"]
    place.opts |= SHORT
    for number in range(2, 8):
        place.table.upsert(costs(("1", "x", number, 9.0)))
        place.table.clean()
        place.table.archive()
    assert place.table.timeline.starts_after(altered)
    _check(place, [("1", "x", 7, 9.0), SECOND], {"cost": version_id})
    histories = [path for path in place.storage.files if "/.schema/" in path]
    assert len(histories) <= place.table.timeline.num_completed
    alter(place.storage, RENAMED, AGAIN)
    assert place.read("id", "city", "ts", "price") == [("1", "x", 7, 9.0), SECOND]


def test_the_version_of_the_table_stays(place: Place) -> None:
    before, table = place.storage.files, place.table
    with pytest.raises(UnsupportedTableError, match=OPTION):
        table.downgrade(6) if table.properties.version > 6 else table.upgrade(9)
    assert place.storage.files == before


@pytest.mark.parametrize("version", "69")
def test_a_column_of_the_name_of_hudis_key_has_no_number(version: str) -> None:
    made = Place({**TRIPS, VERSION: version})
    rows = trips(FIRST).append_column(LATEST_SCHEMA_KEY, pa.array(["x"]))
    made.table.upsert(rows)
    assert made.read("id", LATEST_SCHEMA_KEY) == [("1", "x")]


@pytest.mark.parametrize("version", ["6", pytest.param("9", marks=pytest.mark.slow)])
def test_a_commit_is_never_seen_without_its_history(version: str) -> None:
    start, every = _altered(COW, version).storage, count()

    def at(storage: Storage) -> Place:
        there = Place({**TRIPS, TYPE: COW, VERSION: version})
        there.storage = storage  # type: ignore[assignment]
        return there

    def check(left: MemoryStorage, raised: BaseException | None) -> None:
        found = at(left).read("id", "city", "ts", "cost")
        assert found in ([[NEW, SECOND]] if raised is None else BEFORE_AND_AFTER)
        if next(every) % 7 == 0:
            at(left).table.upsert(new)
            assert at(left).read("id", "new") == [("1", 7), ("2", None)]

    new = costs(NEW).append_column("new", pa.array([7]))

    def play(storage: Storage) -> None:
        at(storage).table.upsert(new)

    assert sweep(start, play, check, CRASHES) > 20
    assert timeline_of(start).num_completed == 2

"""Columns that Hudi finds by number are not taken for others, at whatever door one comes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.inspection.findings import Kind
from hoodie_ds.reader.table_stream import TableStream
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.sink.coordinator import Coordinator
from tests.faults.writers import BESIDE_OTHERS, Place
from tests.schema_on_read import TRIPS as COLUMNS
from tests.schema_on_read import Columns, alter, changed, write_without_option
from tests.tables import TRIPS, TYPE, TYPES, VERSION, found, trips
from tests.tiers import by_day, in_turn

DUE = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
}
OPTION = r"hoodie\.schema\.on\.read\.enable"
ROWS = [("1", "x", 1, 1.0), ("2", "x", 1, 2.0)]
RENAMED = changed(COLUMNS, {"fare": "cost"})
SWAPPED = changed(COLUMNS, {"city": "id", "id": "city"})
DROPPED = COLUMNS[:3]
BACK = [*DROPPED, (9, "fare", "double")]
RETYPED = [*DROPPED, (8, "fare", "string")]
ADDED = [*COLUMNS[:2], (9, "extra", "string"), *COLUMNS[2:]]
MOVED = [COLUMNS[3], *COLUMNS[:3]]


PLACES = [f"{kind} {version}" for kind, version in product(TYPES, "69")]


@cache
def _written(kind: str, version: str) -> Place:
    made = Place({**TRIPS, TYPE: kind, VERSION: version})
    made.table.upsert(trips(*ROWS))
    return made


@pytest.fixture(params=by_day(PLACES, {f"{TYPES[0]} 9", f"{TYPES[1]} 6"}))
def place(request: pytest.FixtureRequest) -> Place:
    return _written(*request.param.split()).copy()


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ([COLUMNS, RENAMED], "'fare' is 'cost'"),
        ([COLUMNS, SWAPPED], "'city' is 'id', 'id' is 'city'"),
        ([COLUMNS, DROPPED], "'fare' was dropped"),
        ([COLUMNS, DROPPED, BACK], "'fare' was dropped"),
        ([COLUMNS, RETYPED], "'fare' was double and is string"),
        ([COLUMNS, RENAMED, COLUMNS], "'cost' is 'fare'"),
    ],
    ids=["renamed", "swapped", "dropped", "dropped and added", "retyped", "renamed back"],
)
def test_other_names_are_refused(place: Place, versions: list[Columns], said: str) -> None:
    time = alter(place.storage, *versions)
    with pytest.raises(UnsupportedTableError, match=rf"{time}.*commit .*{said}\).*{OPTION}=true"):
        place.table.read()


@pytest.mark.parametrize("versions", [[COLUMNS, ADDED], [COLUMNS, MOVED]], ids=["added", "moved"])
def test_names_that_have_stayed_are_read(place: Place, versions: list[Columns]) -> None:
    alter(place.storage, *versions)
    assert found(place.table) == ROWS
    assert place.table.schema.names[5:] == [name for _, name, _ in versions[-1]]
    assert place.table.inspect.verify()
    assert not [text for text in place.table.inspect.show().remarks if "renamed" in text]


READS: dict[str, Callable[[Place], object]] = {
    "schema": lambda place: place.table.schema,
    "read": lambda place: place.table.read(columns=["id"]),
    "scan": lambda place: place.table.scan(),
    "time travel": lambda place: place.table.read(as_of="2100-01-01"),
    "incremental": lambda place: place.table.read_incremental("000"),
    "changes": lambda place: place.table.read_changes("000"),
    "stream": lambda place: _stream(place).schema,
    "rows of the command": lambda place: list(place.table.inspect.rows()),
    "key of the command": lambda place: place.table.inspect.locate("1"),
    "Delta": lambda place: place.table.sync_delta(),
}
WRITES: dict[str, Callable[[Place], object]] = {
    "upsert": lambda place: place.table.upsert(trips(*ROWS)),
    "insert": lambda place: place.table.insert(trips(*ROWS)),
    "overwrite": lambda place: place.table.overwrite(trips(*ROWS)),
    "delete": lambda place: place.table.delete(trips(*ROWS)),
    "delete partitions": lambda place: place.table.delete_partitions(["x"]),
    "preview": lambda place: _writer(place).preview(trips(*ROWS).schema),
    "rescale": lambda place: place.table.rescale_buckets(4),
    "other version": lambda place: _to_other_version(place.table),
}


def _stream(place: Place) -> TableStream:
    return TableStream(place.storage, ReadOptions.parse({"path": "/t"}))


def _writer(place: Place) -> Coordinator:
    return Coordinator(_parsed(place), place.storage, place.clock, place.ids)


def _parsed(place: Place, options: Mapping[str, str] | None = None) -> WriteOptions:
    return WriteOptions.parse({**place.opts, **(options or {}), "path": "/t"})


def _to_other_version(table: HoodieTable) -> object:
    return table.upgrade(9) if table.properties.version == 6 else table.downgrade(6)


@pytest.mark.parametrize(("door", "place"), in_turn(READS, PLACES), indirect=["place"])
def test_no_door_reads_other_names(place: Place, door: str) -> None:
    alter(place.storage, COLUMNS, RENAMED)
    with pytest.raises(UnsupportedTableError, match=OPTION):
        READS[door](place)


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
    "versions", [[COLUMNS, RENAMED], [COLUMNS, ADDED]], ids=["renamed", "added"]
)
@pytest.mark.parametrize(("door", "place"), in_turn(WRITES, PLACES), indirect=["place"])
def test_no_door_writes_a_commit_without_numbers(
    place: Place, door: str, versions: list[Columns]
) -> None:
    alter(place.storage, *versions)
    before = place.storage.files
    with pytest.raises(UnsupportedTableError, match=OPTION):
        WRITES[door](place)
    assert place.storage.files == before


@pytest.mark.parametrize("dry", [True, False])
def test_services_do_not_rewrite_files_by_name(place: Place, dry: bool) -> None:
    clusters = place.opts[TYPE] == "COPY_ON_WRITE"
    if clusters:
        place = Place({**place.opts, "hoodie.index.type": "SIMPLE"})
    service = place.table.cluster if clusters else place.table.compact
    place.table.upsert(trips(*ROWS))
    place.table.upsert(trips(("1", "x", 2, 3.0)))
    assert service(DUE, dry=True)
    alter(place.storage, COLUMNS, RENAMED)
    before = place.storage.files
    with pytest.raises(UnsupportedTableError, match=OPTION):
        service(DUE, dry=dry)
    assert place.storage.files == before


def test_a_service_that_was_planned_before_is_not_carried_out(place: Place) -> None:
    """Hudi on the JVM does so, by the numbers."""
    place = Place({**place.opts, TYPE: "MERGE_ON_READ"})
    place.table.upsert(trips(*ROWS))
    place.table.upsert(trips(("1", "x", 2, 3.0)))
    context = ServiceContext(_parsed(place, DUE), place.storage, place.clock, place.ids)
    assert Compactor(context).schedule()
    alter(place.storage, COLUMNS, RENAMED)
    with pytest.raises(UnsupportedTableError, match=OPTION):
        place.table.compact(DUE)
    assert place.table.timeline.pending_compactions


def test_a_change_meanwhile_is_found_by_the_commit(place: Place) -> None:
    place.opts |= BESIDE_OTHERS
    batch = place.begin(trips(("1", "x", 2, 3.0)))
    message = batch.write()
    alter(place.storage, COLUMNS, RENAMED)
    with pytest.raises(UnsupportedTableError, match=OPTION):
        batch.writer.commit([message])


@pytest.mark.parametrize(
    "history", [b"", b"{", b"[]", b'{"schemas": [{"version_id": 7}]}', b'{"schemas": 7}']
)
def test_without_a_history_nothing_tells_that_names_have_stayed(
    place: Place, history: bytes
) -> None:
    alter(place.storage, COLUMNS, ADDED, history=history)
    with pytest.raises(UnsupportedTableError, match=r"\.hoodie/\.schema does not say which"):
        place.table.read()


def test_the_command_names_it(place: Place) -> None:
    time = alter(place.storage, COLUMNS, RENAMED)
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

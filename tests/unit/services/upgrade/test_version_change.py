"""A table in another version: its properties, its timeline, and who is refused."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.enums import MergeMode
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import (
    CorruptFileError,
    OptionError,
    StorageError,
    TimelineError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.formats.avro.container import is_container, read_record
from hoodie_ds.services.upgrade import properties, version_change
from hoodie_ds.services.upgrade.properties import translated
from hoodie_ds.services.upgrade.timeline_files import converted_body
from hoodie_ds.table.table import open_table, update_properties
from hoodie_ds.testing import FaultyStorage, MemoryStorage, Operation
from hoodie_ds.testing.fault import Kind
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import format_time
from hoodie_ds.timeline.paths import PROPERTIES_BACKUP, instant_path
from tests.faults.writers import Place
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips

MODEL = "org.apache.hudi.common.model."
VERSION = "hoodie.write.table.version"
HUDIS = {
    "hoodie.table.name": "upg",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.archivelog.folder": "history",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "region",
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.compaction.payload.class": MODEL + "DefaultHoodieRecordPayload",
    "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}
"""Properties of a table of version 6 as Apache Hudi 1.2 creates it."""

IN_NINE = {
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.initial.version": "6",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.table.legacy.payload.class": MODEL + "DefaultHoodieRecordPayload",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.timeline.path": "timeline",
    "hoodie.archivelog.folder": "history",
}
"""What Apache Hudi 1.2 makes of them."""

GONE_IN_NINE = {"hoodie.compaction.payload.class", "hoodie.record.merge.strategy.id"}


def _properties(**changes: str) -> TableProperties:
    entries = HUDIS | {f"hoodie.{key.replace('_', '.')}": text for key, text in changes.items()}
    return TableProperties.parse("\n".join(f"{k}={v}" for k, v in entries.items()), "p")


def _table(storage: MemoryStorage, kind: str = "COPY_ON_WRITE") -> HoodieTable:
    options = {**TRIPS, BUCKETS: "1", TYPE: kind}
    table = HoodieTable("memory://t", options, storage=storage)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.upsert(trips(("a", "x", 3, 3.0)))
    return table


def test_properties_become_those_that_hudi_makes() -> None:
    found = translated(_properties(), 9).raw
    assert {key: found.get(key) for key in IN_NINE} == IN_NINE
    assert not GONE_IN_NINE & found.keys()


def _with_payload(name: str) -> MemoryStorage:
    """A merge-on-read table of version 6 with an ordering field and a payload class of Hudi's."""
    storage = MemoryStorage("memory://t")
    _table(storage, "MERGE_ON_READ")
    update_properties(open_table(storage), {"hoodie.compaction.payload.class": MODEL + name}, (), 0)
    return storage


OVERWRITE = "OverwriteWithLatestAvroPayload"
"""The payload class for which an ordering field says nothing."""


@pytest.mark.parametrize(
    "payload", ["DefaultHoodieRecordPayload", "EventTimeAvroPayload", OVERWRITE]
)
def test_a_merge_on_read_table_with_an_ordering_field_becomes_ordered_by_it(
    payload: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Hudi's ``SevenToEightUpgradeHandler.upgradeMergeMode``."""
    table = HoodieTable("memory://t", storage=_with_payload(payload))
    caplog.clear()
    table.upgrade(8)
    raw = table.properties.raw
    assert raw["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert raw["hoodie.compaction.payload.class"] == MODEL + "DefaultHoodieRecordPayload"
    assert raw["hoodie.record.merge.strategy.id"] == HUDIS["hoodie.record.merge.strategy.id"]
    assert ("in version 8 rows are ordered by ts" in caplog.text) == (payload == OVERWRITE)
    table.upsert(trips(("a", "x", 0, 0.0), ("b", "x", 1, 2.0)))
    assert found(table) == [("a", "x", 3, 3.0), ("b", "x", 1, 2.0)]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("ways", [(8, 9, 8, 6), (9, 6)])
def test_a_table_that_fills_goes_on_filling(kind: str, ways: tuple[int, ...]) -> None:
    fills = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", TYPE: kind, BUCKETS: "1"}
    table = HoodieTable("memory://t", {**TRIPS, **fills}, storage=MemoryStorage("memory://t"))
    table.upsert(trips(("a", "x", 1, 5.0)))
    for ts, to in enumerate(ways, 2):
        _ = table.upgrade(to) if to > table.properties.version else table.downgrade(to)
        table.upsert(trips(("a", "x", ts, None)))
        assert found(table) == [("a", "x", ts, 5.0)]


def test_savepoints_that_another_order_would_change_are_refused() -> None:
    table = HoodieTable("memory://t", storage=_with_payload(OVERWRITE))
    table.savepoint()
    for dry in (True, False):
        with pytest.raises(UnsupportedTableError, match="delete the savepoints first"):
            _ = table.upgrade(8, dry=dry)
    assert table.properties.version == 6


def test_a_call_with_the_payload_of_before_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """The options of a call that was killed, or is made twice, are those of the first one."""
    storage = _with_payload(OVERWRITE)
    payload = {"hoodie.datasource.write.payload.class": MODEL + OVERWRITE}
    table = HoodieTable("memory://t", payload, storage=storage)
    assert table.upgrade(8, dry=True).changed["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert "in version 8 rows are ordered by ts" in caplog.text
    assert table.upgrade(8)
    assert not table.upgrade(8)
    with pytest.raises(OptionError, match="EVENT_TIME_ORDERING"):
        table.upsert(trips(("a", "x", 0, 0.0)))


@pytest.mark.parametrize("payload", [f"{MODEL}AWSDmsAvroPayload", "com.X"])
@pytest.mark.parametrize("mode", ["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"])
def test_a_payload_that_is_not_standard_stays(payload: str, mode: str) -> None:
    """By the payload class alone Hudi tells that a table is not one of its modes."""
    before = _properties(
        compaction_payload_class=payload, record_merge_mode=mode, table_type="MERGE_ON_READ"
    )
    assert translated(before, 8).raw["hoodie.compaction.payload.class"] == payload


def test_a_copy_on_write_table_keeps_the_order_of_its_payload() -> None:
    before = _properties(compaction_payload_class=MODEL + OVERWRITE)
    assert translated(before, 8).raw["hoodie.record.merge.mode"] == "COMMIT_TIME_ORDERING"


@pytest.mark.parametrize(
    ("payload", "mode"),
    [
        ("PartialUpdateAvroPayload", "EVENT_TIME_ORDERING"),
        ("OverwriteNonDefaultsWithLatestAvroPayload", "COMMIT_TIME_ORDERING"),
    ],
)
@pytest.mark.parametrize("kind", TYPES)
def test_payloads_that_fill_become_a_mode_and_back(payload: str, mode: str, kind: str) -> None:
    before = _properties(compaction_payload_class=MODEL + payload, table_type=kind)
    nine = translated(before, 9).raw
    assert nine["hoodie.record.merge.mode"] == mode
    assert nine["hoodie.table.partial.update.mode"] == "IGNORE_DEFAULTS"
    assert nine["hoodie.table.legacy.payload.class"] == MODEL + payload
    eight = translated(translated(before, 9), 8).raw
    assert eight["hoodie.record.merge.mode"] == "CUSTOM"
    assert eight["hoodie.compaction.payload.class"] == MODEL + payload
    assert "hoodie.table.partial.update.mode" not in eight
    assert "hoodie.table.legacy.payload.class" not in eight
    six = translated(translated(before, 9), 6).raw  # Hudi's downgrade takes the mode away
    assert six["hoodie.compaction.payload.class"] == MODEL + payload
    assert "hoodie.record.merge.mode" not in six


DATABASES = ["AWSDms", "debezium.MySqlDebezium", "debezium.PostgresDebezium"]


@pytest.mark.parametrize("database", DATABASES)
def test_payloads_of_databases_come_back_as_they_were(database: str) -> None:
    payload = f"{MODEL}{database}AvroPayload"
    six = _properties(compaction_payload_class=payload)
    nine = translated(six, 9)
    assert nine.raw["hoodie.table.legacy.payload.class"] == payload
    assert nine.merge_mode is not MergeMode.CUSTOM
    again = translated(nine, 6)
    assert again.raw["hoodie.compaction.payload.class"] == payload
    assert again.merge_mode is MergeMode.CUSTOM
    ordered = {"AWSDms": "ts", "debezium.PostgresDebezium": "_event_lsn"}.get(database)
    assert again.raw["hoodie.table.precombine.field"] == (ordered or "_event_seq")
    assert not [key for key in again.raw if "merge.property" in key or "partial.update" in key]


def test_properties_that_a_payload_does_not_stand_for_are_refused() -> None:
    nine = translated(_properties(compaction_payload_class=f"{MODEL}AWSDmsAvroPayload"), 9)
    marked = "hoodie.record.merge.property.hoodie.payload.delete.marker"
    with pytest.raises(UnsupportedTableError, match="merge or partition its rows otherwise"):
        translated(nine.with_changes({marked: "gone"}), 8)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
def test_a_table_goes_on_in_each_version(kind: str, mode: str) -> None:
    options = {**TRIPS, BUCKETS: "1", TYPE: kind, "hoodie.record.merge.mode": mode}
    table = HoodieTable("memory://t", options, storage=MemoryStorage("memory://t"))
    table.upsert(trips(("a", "x", 5, 5.0), ("b", "x", 1, 1.0)))
    before = table.properties.raw
    for number, to in enumerate((8, 9, 8, 6, 9, 6), 1):
        _ = table.upgrade(to) if to > table.properties.version else table.downgrade(to)
        table.upsert(trips(("a", "x", 0, float(-number)), ("b", "x", 1, float(number))))
        late = ("a", "x", 0, float(-number))
        kept = late if mode == "COMMIT_TIME_ORDERING" else ("a", "x", 5, 5.0)
        assert found(table) == [kept, ("b", "x", 1, float(number))]
        table.delete(trips(("b", "x", 9, None)).select(["id", "city"]))
        assert found(table) == [kept]
    assert table.properties.raw == before


def test_the_timeline_has_hudis_names_and_bytes() -> None:
    storage = MemoryStorage("memory://t")
    table = _table(storage)
    written = {status.path: status.modified_ms for status in storage.list(".hoodie")}
    first, second = table.timeline.commits
    table.upgrade(8)
    assert [i.time for i in table.timeline.commits] == [first.time, second.time]
    for old, new in zip((first, second), table.timeline.commits, strict=True):
        ended = format_time(written[f".hoodie/{old.time}.commit"], utc=True)
        assert new.time < new.completion_time
        assert new.completion_time == max(ended, str(int(old.time) + 1))
        path = f".hoodie/timeline/{old.time}_{new.completion_time}.commit"
        assert read_record(storage.read(path), path)["operationType"] == "UPSERT"
        assert storage.read(f".hoodie/timeline/{old.time}.commit.requested") == b""
        assert is_container(storage.read(f".hoodie/timeline/{old.time}.inflight"))
    assert first.time not in str(storage.list(".hoodie"))


def test_a_dry_change_says_what_would_be_and_changes_nothing() -> None:
    storage = MemoryStorage("memory://t")
    table = _table(storage)
    before = storage.files
    would = table.upgrade(9, dry=True)
    assert (would.before, would.after) == (6, 9)
    assert would.changed["hoodie.table.version"] == "9"
    assert would.changed["hoodie.compaction.payload.class"] is None
    assert storage.files == before


def test_versions_that_are_not_there_are_refused() -> None:
    table = _table(MemoryStorage("memory://t"))
    for to in (6, 7, 10, True, 9.0, np.int64(9), "9"):
        with pytest.raises(OptionError, match="8 or 9"):
            table.upgrade(cast(int, to))
    with pytest.raises(OptionError, match="the table has version 6"):
        table.downgrade(8)
    assert not table.downgrade(6)


def test_the_version_among_the_options_is_no_contradiction() -> None:
    storage = MemoryStorage("memory://t")
    _table(storage)
    for version, to in (("9", 9), ("9", 8)):
        table = HoodieTable(
            storage.root, {**TRIPS, BUCKETS: "1", VERSION: version}, storage=storage
        )
        assert (table.upgrade(to) if to > 8 else table.downgrade(to)).after == to


def test_a_dead_write_is_rolled_back_before_the_change() -> None:
    place = Place({**TRIPS, BUCKETS: "1"})
    place.table.upsert(trips(("a", "x", 1, 1.0)))
    message = place.begin(trips(("a", "x", 2, 2.0))).write()
    place.table.upgrade(9)
    assert found(place.table) == [("a", "x", 1, 1.0)]
    named = {status.stat.path for status in message.statuses}
    assert named
    assert not named & place.storage.files.keys()


def test_a_writer_that_began_before_is_refused() -> None:
    place = Place({**TRIPS, BUCKETS: "1"})
    place.table.upsert(trips(("a", "x", 1, 1.0)))
    batch = place.begin(trips(("a", "x", 2, 2.0)))
    place.table.upgrade(9)
    with pytest.raises((WriteConflictError, UnsupportedTableError)):
        batch.writer.commit([batch.write()])
    assert found(place.table) == [("a", "x", 1, 1.0)]


def test_nobody_writes_during_the_change() -> None:
    place = Place({**TRIPS, BUCKETS: "1"})
    place.table.upsert(trips(("a", "x", 1, 1.0)))
    refused: list[str] = []

    def others(operation: Operation) -> None:
        if operation.path == PROPERTIES_BACKUP and not refused:
            with pytest.raises(TimelineError, match="from version 6 to 9 is incomplete") as error:
                place.table.upsert(trips(("b", "x", 1, 1.0)))
            refused.append(str(error.value))

    storage = FaultyStorage(place.storage, before_each=others)
    HoodieTable("memory://t", {**TRIPS, BUCKETS: "1"}, storage=storage).upgrade(9)
    assert refused
    assert found(place.table) == [("a", "x", 1, 1.0)]
    place.table.upsert(trips(("b", "x", 1, 1.0)))
    assert found(place.table) == [("a", "x", 1, 1.0), ("b", "x", 1, 1.0)]


@pytest.mark.parametrize("kind", TYPES)
def test_writes_older_than_the_change_are_not_rolled_back(kind: str) -> None:
    table = _table(MemoryStorage("memory://t"), kind)
    first = table.timeline.commits[0].time
    table.upgrade(8)
    with pytest.raises(TimelineError, match="before the table's version was changed"):
        table.rollback()
    with pytest.raises(TimelineError, match="before the table's version was changed"):
        table.restore(first)
    table.upsert(trips(("a", "x", 4, 4.0)))
    table.rollback()
    assert found(table) == [("a", "x", 3, 3.0), ("b", "x", 1, 1.0)]


def test_overwrites_and_clusterings_have_the_names_of_their_layout() -> None:
    options = {**TRIPS, "hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"}
    table = HoodieTable("memory://t", options, storage=MemoryStorage("memory://t"))
    table.overwrite(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
    table.insert(trips(("c", "x", 1, 1.0)))
    table.cluster()
    overwritten, _, clustered = table.timeline.commits
    rows = [("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "x", 1, 1.0)]
    storage = table._storage
    assert storage is not None
    table.upgrade(9)
    names = {status.path.rpartition("/")[2] for status in storage.list(".hoodie/timeline")}
    for state in (State.REQUESTED, State.INFLIGHT):
        assert f"{overwritten.time}.{Action.REPLACE_COMMIT.value}.{state.value}" in names
        assert f"{clustered.time}.{Action.CLUSTERING.value}.{state.value}" in names
    assert found(table) == rows
    table.downgrade(6)
    names = {status.path.rpartition("/")[2] for status in storage.list(".hoodie")}
    assert f"{clustered.time}.replacecommit.requested" in names
    assert found(table) == rows


def test_a_custom_key_generator_keeps_the_types_of_its_fields() -> None:
    before = _properties(
        table_keygenerator_type="CUSTOM",
        table_partition_fields="region",
        datasource_write_partitionpath_field="region:SIMPLE",
    )
    nine = translated(before, 9)
    assert nine.raw["hoodie.table.partition.fields"] == "region:SIMPLE"
    six = translated(nine, 6)
    assert six.raw["hoodie.table.partition.fields"] == "region"
    assert six.partition_field_specs == ("region:SIMPLE",)


def test_a_merge_of_the_users_own_stays_one_and_so_does_a_table_without_ordering() -> None:
    hook = {"record_merge_mode": "CUSTOM", "compaction_payload_class": "mine.Payload"}
    custom = _properties(
        **hook, record_merge_strategy_id="00000000-0000-0000-0000-000000000000"
    ).without({"hoodie.table.ordering.fields"})
    nine = translated(custom, 9)
    assert nine.raw["hoodie.compaction.payload.class"] == "mine.Payload"
    assert translated(nine, 8).raw["hoodie.compaction.payload.class"] == "mine.Payload"
    assert translated(nine, 6).merge_mode is MergeMode.CUSTOM


def test_a_version_that_would_merge_differently_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is known whose meaning a step changes: so a step of its own is put in."""
    lost = {"hoodie.table.ordering.fields": "other"}
    monkeypatch.setitem(properties._STEPS, (6, 8), lambda found: lost)
    with pytest.raises(UnsupportedTableError, match="merge or partition its rows otherwise"):
        translated(_properties(), 8)


def test_a_change_says_what_it_does() -> None:
    table = _table(MemoryStorage("memory://t"))
    told = str(table.upgrade(8, dry=True))
    assert told.startswith("version 6 to 8, ")
    assert "properties" in told
    table.upgrade(8)
    assert str(table.upgrade(8)) == "version 8, nothing to do"


def test_a_change_under_way_to_another_version_is_ended_first() -> None:
    storage = MemoryStorage("memory://t")
    _table(storage)
    count = 0

    def stop(operation: Operation) -> None:
        nonlocal count
        if operation.path == PROPERTIES_BACKUP and not count:
            count += 1
            raise StorageError("stopped")

    faulty = FaultyStorage(storage, before_each=stop)
    with pytest.raises(StorageError, match="stopped"):
        HoodieTable("memory://t", {**TRIPS, BUCKETS: "1"}, storage=faulty).upgrade(8)
    table = HoodieTable("memory://t", {**TRIPS, BUCKETS: "1"}, storage=storage)
    with pytest.raises(TimelineError, match="change of the table to version 8 is under way"):
        table.upgrade(9)
    assert table.upgrade(8)
    assert table.upgrade(9)


def test_one_of_several_writers_changes_a_version() -> None:
    several = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    storage = MemoryStorage("memory://t")
    rows = found(_table(storage))
    table = HoodieTable("memory://t", {**TRIPS, BUCKETS: "1", **several}, storage=storage)
    assert table.upgrade(9)
    assert found(table) == rows


def test_a_damaged_commit_is_not_converted() -> None:
    storage = MemoryStorage("memory://t")
    table = _table(storage)
    path = instant_path(table.timeline.commits[0])
    storage.replace(path, b"{")
    with pytest.raises(CorruptFileError):
        table.upgrade(9)
    instant = Instant("20250101000000000", Action.COMMIT, State.COMPLETED)
    with pytest.raises(CorruptFileError, match="is not what a commit says"):
        converted_body(b"[1]", instant, 2, path)


def test_a_file_of_an_attempt_that_ended_is_put_anew() -> None:
    storage = MemoryStorage("memory://t")
    table = _table(storage)
    rows, commit = found(table), table.timeline.commits[0]
    storage.put_if_absent(f".hoodie/timeline/{commit.time}.commit.requested", b"old")
    table.upgrade(9)
    assert found(table) == rows
    assert storage.read(f".hoodie/timeline/{commit.time}.commit.requested") != b"old"


def test_a_change_is_decided_again_if_others_decided_first(monkeypatch: pytest.MonkeyPatch) -> None:
    decide, tries = version_change._decide, []

    def slower(*given: Any) -> bool:
        tries.append(given)
        return len(tries) > 1 and decide(*given)

    monkeypatch.setattr(version_change, "_decide", slower)
    table = _table(MemoryStorage("memory://t"))
    rows = found(table)
    assert table.upgrade(9)
    assert len(tries) == 2
    assert found(table) == rows


@pytest.mark.parametrize("late", [False, True])
def test_a_timeline_that_loses_files_meanwhile_is_not_converted(late: bool) -> None:
    storage = MemoryStorage("memory://t")
    rows = found(_table(storage))
    gone = {p: d for p, d in storage.files.items() if p.endswith(".commit.requested")}
    put: list[str] = []

    def archives(operation: Operation) -> None:
        if operation.kind is not Kind.PUT or not operation.path.startswith(".hoodie/timeline/"):
            return
        for path in gone if not late else [p for p in gone if p.rpartition("/")[2] in put]:
            storage.delete(path)
        put.append(operation.path.rpartition("/")[2])

    options = {**TRIPS, BUCKETS: "1"}
    faulty = FaultyStorage(storage, before_each=archives)
    with pytest.raises(TimelineError, match="has changed while it was put into layout 2"):
        HoodieTable("memory://t", options, storage=faulty).upgrade(9)
    for path, body in gone.items():
        storage.put_if_absent(path, body)
    table = HoodieTable("memory://t", options, storage=storage)
    assert table.upgrade(9)
    assert found(table) == rows


def test_avro_bodies_stay_as_they_are() -> None:
    instant = Instant("20250101000000000", Action.COMMIT, State.COMPLETED, layout=2)
    body = CommitMetadata(operation_type="UPSERT").to_bytes(2)
    assert converted_body(body, instant, 2, "p") == body

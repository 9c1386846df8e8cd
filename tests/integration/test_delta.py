"""A table and the Delta log beside it, through all that happens to a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from hoodie_ds import DeltaSyncError, HoodieError, HoodieTable, SchemaError, Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.errors import AlreadyExistsError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.sync.delta import columns
from hoodie_ds.sync.delta.log import LOG
from hoodie_ds.sync.delta.sync import sync
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, SimulatedCrash
from tests.delta import SYNC, assert_same, delta, ours, rows
from tests.s3_server import S3Server
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, trips

PAIR = pa.struct({"a": pa.int32(), "b": pa.string()})
A = trips(("a", "oslo", 1, 1.0))
B = trips(("b", "rome", 1, 2.0))

TABLES = [
    ("COPY_ON_WRITE", "6"),
    ("MERGE_ON_READ", "9"),
    ("COPY_ON_WRITE", "8"),
    ("MERGE_ON_READ", "6"),
]
NUMBERED = {"hoodie.datasource.write.streaming.checkpoint.identifier": "query"}
BATCH = "hoodie.datasource.write.batch.identifier"
CLEAN = {
    "hoodie.write.set.null.for.missing.columns": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "6",
}


@pytest.mark.parametrize(
    ("kind", "version"),
    [*TABLES[:2], *(pytest.param(*t, marks=pytest.mark.slow) for t in TABLES[2:])],
)
def test_all_readers_of_delta_see_our_rows_after_every_step(
    tmp_path: Path, kind: str, version: str
) -> None:
    table = HoodieTable(tmp_path / "t", {**TRIPS, **SYNC, **CLEAN, TYPE: kind, VERSION: version})
    steps: list[Callable[[], object]] = [
        lambda: table.upsert(
            trips(("a", "oslo", 1, 1.0), ("b", "berlin", 1, 2.0), ("c", "a b%&", 1, 3.0))
        ),
        lambda: table.upsert(trips(("a", "oslo", 2, 1.5), ("d", "oslo", 1, 4.0))),
        lambda: table.delete(trips(("b", "berlin", 3, None))),
        lambda: (
            table.compact()
            if kind == "MERGE_ON_READ"
            else table.upsert(trips(("e", "rome", 1, 5.0)))
        ),
        lambda: table.upsert(
            trips(("f", "oslo", 3, 6.0)).append_column("new", pa.array([1], pa.int32()))
        ),
        lambda: table.overwrite(trips(("g", "oslo", 4, 7.0)), partitions_only=True),
        table.clean,
        lambda: table.upsert(trips(("h", "oslo", 5, 8.0), ("h", "rome", 5, 8.0))),
        table.rollback,
        lambda: table.delete_partitions("oslo"),
        table.savepoint,
        lambda: table.overwrite(trips(("i", None, 6, 9.0))),
        lambda: table.restore(table.timeline.savepoints[-1].time),
        table.archive,
        lambda: table.upsert(trips(("j", "oslo", 7, 10.0))),
    ]
    for number, step in enumerate(steps):
        step()
        assert_same(tmp_path / "t")
        assert not table.sync_delta(dry=True), number


def test_a_table_is_taken_up_with_what_it_has(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **CLEAN})
    table.upsert(A)
    table.upsert(B)
    assert not (tmp_path / "_delta_log").exists()
    would = table.sync_delta(dry=True)
    assert (would.version, would.added) == (0, 2)
    assert not (tmp_path / "_delta_log").exists()
    assert str(table.sync_delta()) == str(would).removeprefix("dry ")
    assert_same(tmp_path)


def test_each_version_says_which_hudi_instant_it_goes_up_to(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **SYNC})
    times = [table.upsert(rows).instant_time for rows in (A, B)]
    versions = delta(tmp_path).history()
    assert [version["hudiInstant"] for version in versions[::-1]] == times


def test_a_sync_that_fails_fails_no_write_and_is_made_up_for(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **SYNC})
    table.upsert(A)
    log = tmp_path / "_delta_log"
    log.rename(tmp_path / "aside")
    log.touch()
    written = table.upsert(B)
    assert [failure.service for failure in written.failed_services] == [Service.DELTA]
    log.unlink()
    (tmp_path / "aside").rename(log)
    assert len(rows(delta(tmp_path).to_pyarrow_table())) == 1
    assert not table.upsert(trips(("c", "rome", 1, 1.0))).failed_services
    assert_same(tmp_path)


def test_a_batch_that_is_repeated_makes_up_for_the_sync_of_its_commit(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    options = {**TRIPS, **SYNC, **NUMBERED}
    HoodieTable(tmp_path, options).upsert(A, {BATCH: "1"})
    dies = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path=f"{LOG}/*")
    dying = FaultyStorage(storage, [dies])
    with pytest.raises(SimulatedCrash):
        HoodieTable(tmp_path, options, storage=dying).upsert(B, {BATCH: "2"})
    fails = replace(dies, effect=Effect.FAILED, times=9)
    failing = HoodieTable(tmp_path, options, storage=FaultyStorage(storage, [fails]))
    again = failing.upsert(B, {BATCH: "2"})
    assert again.already_committed
    assert [failure.service for failure in again.failed_services] == [Service.DELTA]
    table = HoodieTable(tmp_path, options)
    assert not table.upsert(B, {BATCH: "2"}).failed_services
    assert_same(tmp_path)
    assert not table.sync_delta(dry=True)


def test_a_batch_without_rows_makes_up_for_the_sync_of_a_commit(tmp_path: Path) -> None:
    HoodieTable(tmp_path, {**TRIPS, **SYNC}).upsert(A)
    HoodieTable(tmp_path, TRIPS).upsert(B)
    HoodieTable(tmp_path, {**TRIPS, **SYNC}).upsert(B.slice(0, 0))
    assert_same(tmp_path)


def test_a_clean_deletes_nothing_that_the_log_still_names(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **CLEAN})
    table.upsert(A)
    table.sync_delta()
    for _ in range(3):
        table.upsert(A)
    log = tmp_path / "_delta_log"
    log.rename(tmp_path / "aside")
    log.touch()
    with pytest.raises(HoodieError):
        table.clean(SYNC)
    log.unlink()
    (tmp_path / "aside").rename(log)
    assert len(rows(delta(tmp_path).to_pyarrow_table())) == 1  # the files are there
    assert table.clean(SYNC)
    assert_same(tmp_path)


def test_a_clean_without_the_option_is_found_out(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **CLEAN})
    table.upsert(A)
    table.sync_delta()
    for _ in range(3):
        table.upsert(A)
    assert table.clean()
    table.upsert(B, SYNC)
    assert_same(tmp_path)


class Racing:
    """Ids whose taker is overtaken by another sync, the first time."""

    def __init__(self, other: Callable[[], object]) -> None:
        self.other: list[Callable[[], object]] = [other]

    def unique(self) -> str:
        while self.other:
            self.other.pop()()
        return "0" * 32


def test_of_two_syncs_at_once_each_version_comes_once(tmp_path: Path) -> None:
    plain = HoodieTable(tmp_path, TRIPS)
    plain.upsert(A)
    plain.sync_delta()
    plain.upsert(B)

    def other() -> None:
        assert plain.sync_delta().version == 1
        plain.upsert(trips(("c", "rome", 1, 1.0)))

    table = open_table(LocalStorage(str(tmp_path)))
    assert sync(table, SystemClock(), Racing(other)).version == 2
    assert_same(tmp_path)


@pytest.mark.parametrize("remembered", [1, 50])
def test_a_commit_that_completes_after_a_later_one_comes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """Of two writers the one that began first; the other has committed twice meanwhile."""
    monkeypatch.setattr("hoodie_ds.sync.delta.changes._LISTED", remembered)
    several = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.lock.provider": (
            "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
        ),
    }
    options = {**TRIPS, **several, **SYNC, "path": str(tmp_path)}
    HoodieTable(tmp_path, options).upsert(A)
    slow = Coordinator.of(WriteOptions.parse(options))
    late = trips(("c", "bergen", 1, 1.0))
    batch = slow.begin(late.schema)
    message = write_task(batch, TaskId(), None, late.to_batches(), sole_writer=True)
    for _ in range(3):
        HoodieTable(tmp_path, options).upsert(B)
        assert_same(tmp_path)
    slow.commit([message])
    assert_same(tmp_path)
    assert len(delta(tmp_path).file_uris()) == 3


def test_the_log_of_another_delta_table_is_left_alone(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, TRIPS)
    table.upsert(A)
    write_deltalake(str(tmp_path), pa.table({"a": [1]}))
    before = sorted((tmp_path / "_delta_log").iterdir())
    with pytest.raises(DeltaSyncError, match="give the Hudi table its own folder"):
        table.sync_delta()
    assert [f.service for f in table.upsert(B, SYNC).failed_services] == [Service.DELTA]
    assert sorted((tmp_path / "_delta_log").iterdir()) == before


def test_a_damaged_version_is_named_with_what_to_do(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **SYNC})
    table.upsert(A)
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(DeltaSyncError, match=r"0\.json cannot be read.*delete _delta_log"):
        table.sync_delta()


def test_no_writer_of_delta_changes_or_vacuums_the_table(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **SYNC})
    for _ in range(3):
        table.upsert(A)
    files = set(tmp_path.rglob("*.parquet"))
    for change in (
        delta(tmp_path).optimize.compact,
        delta(tmp_path).delete,
        lambda: write_deltalake(delta(tmp_path), ours(tmp_path), mode="append"),
        lambda: delta(tmp_path).vacuum(0, dry_run=False, enforce_retention_duration=False),
    ):
        with pytest.raises(DeltaError):
            change()
    assert delta(tmp_path).vacuum(dry_run=False) == []
    assert set(tmp_path.rglob("*.parquet")) == files
    assert len(files) == 3


def test_what_delta_has_no_type_for_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of other writers have times of day; here a type that can be written stands for it."""
    monkeypatch.delitem(columns._PRIMITIVE, pa.date32())
    day = pa.array([date(2024, 2, 29)])
    with pytest.raises(SchemaError, match=r"'day'.*hoodie\.py\.delta\.sync"):
        HoodieTable(tmp_path / "t", {**TRIPS, **SYNC}).upsert(A.append_column("day", day))
    assert not (tmp_path / "t").exists()


def test_types_of_all_kinds_read_the_same(tmp_path: Path) -> None:
    noon = datetime(2024, 2, 29, 12, 0, 0, 123456)
    more = {
        "date": pa.array([noon.date()]),
        "local": pa.array([noon], pa.timestamp("us")),
        "utc": pa.array([noon], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
        "bytes": pa.array([b"\x00"]),
        "flag": pa.array([True]),
        "small": pa.array([1.5], pa.float32()),
        "list": pa.array(
            [[{"a": 1, "b": None}]], pa.list_(pa.struct({"a": pa.int32(), "b": pa.string()}))
        ),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    table = HoodieTable(tmp_path, {**TRIPS, **SYNC})
    table.upsert(A)
    wide = A
    for name, column in more.items():
        wide = wide.append_column(name, column)
    table.upsert(wide.append_column("long", pa.array([1], pa.int32())))
    wide = wide.append_column("long", pa.array([2**40]))
    table.upsert(wide.set_column(0, "id", pa.array(["z"])))
    dataset = delta(tmp_path).to_pyarrow_dataset()
    names = [name for name in ours(tmp_path).schema.names if name != "map"]
    assert rows(dataset.to_table(names)) == rows(ours(tmp_path).select(names))
    assert sorted(map(str, dataset.to_table(["map"]).to_pylist())) == sorted(
        map(str, ours(tmp_path).select(["map"]).to_pylist())
    )


def test_readers_leave_files_out_by_the_partition_column(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **SYNC})
    table.upsert(pa.concat_tables([A, B]))
    actions = pa.table(delta(tmp_path).get_add_actions(flatten=True))
    bounds = zip(actions["min.city"].to_pylist(), actions["max.city"].to_pylist(), strict=True)
    assert set(bounds) == {("oslo", "oslo"), ("rome", "rome")}
    assert actions["num_records"].to_pylist() == [1, 1]


def test_a_clustering_is_no_change_of_data(tmp_path: Path) -> None:
    options = {
        **TRIPS,
        **SYNC,
        "hoodie.index.type": "BLOOM",
        "hoodie.parquet.small.file.limit": "0",
    }
    del options[BUCKETS]
    table = HoodieTable(tmp_path, options)
    table.insert(A)
    table.insert(trips(("z", "oslo", 1, 1.0)))
    assert table.cluster()
    assert_same(tmp_path)
    last = sorted((tmp_path / "_delta_log").glob("*.json"))[-1].read_text()
    assert '"dataChange":false' in last
    assert '"dataChange":true' not in last


def test_the_log_stays_short_and_its_checkpoints_say_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie_ds.sync.delta.log._FEWEST", 3)
    table = HoodieTable(tmp_path, {**TRIPS, **SYNC})
    for number in range(14):
        table.upsert(trips((f"k{number}", "oslo", number, 1.0)))
        assert_same(tmp_path)
    names = sorted(path.name for path in (tmp_path / "_delta_log").iterdir())
    assert f"{6:020d}.checkpoint.parquet" in names
    assert f"{5:020d}.json" not in names
    assert not table.sync_delta()
    assert delta(tmp_path).version() == 13


def test_a_sync_after_a_commit_costs_what_the_commit_wrote(tmp_path: Path) -> None:
    def operations(partitions: int) -> int:
        storage = FaultyStorage(MemoryStorage(f"memory://{partitions}"))
        options = {**TRIPS, **SYNC, "hoodie.clean.automatic": "false"}
        table = HoodieTable("memory://t", options, storage=storage)
        table.upsert(trips(*((f"k{n}", f"c{n}", 1, 1.0) for n in range(partitions))))
        before = len(storage.recorder.operations)
        table.upsert(trips(("k0", "c0", 2, 2.0)))
        new = storage.recorder.operations[before:]
        listed = [op for op in new if op.kind is Kind.LIST and op.path.startswith("c")]
        assert {op.path for op in listed} == {"c0"}
        return len(new)

    assert operations(3) == operations(30)


@pytest.mark.slow
@pytest.mark.parametrize("server", ["s3", "versitygw"], indirect=True)
def test_a_log_on_s3(server: S3Server, tmp_path: Path) -> None:
    """By the table's own connection: nothing has to be said twice."""
    path = f"s3://tables{tmp_path}"
    table = HoodieTable(path, {**TRIPS, **SYNC, **server.table_options})
    table.upsert(A)
    table.upsert(pa.concat_tables([A, B]))
    found = DeltaTable(path, storage_options=server.rust_options)
    assert found.version() == 1
    assert rows(found.to_pyarrow_table()) == rows(table.read())


def test_tables_without_keys(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {"hoodie.table.name": "t", **SYNC})
    table.insert(A)
    table.insert(pa.concat_tables([A, B]))
    assert_same(tmp_path)


def test_files_without_meta_columns(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, "hoodie.populate.meta.fields": "false", **SYNC})
    table.upsert(A)
    table.upsert(pa.concat_tables([A, B]))
    assert rows(delta(tmp_path).to_pyarrow_table()) == rows(pa.concat_tables([A, B]))


@pytest.mark.parametrize("kind", TYPES)
def test_the_log_goes_on_when_the_table_changes_its_version(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **SYNC, TYPE: kind})
    table.upsert(A)
    table.upsert(A)
    table.upgrade(9)  # has compacted before
    assert_same(tmp_path)
    table.upsert(B)
    assert_same(tmp_path)
    table.downgrade(8)
    assert_same(tmp_path)
    table.upsert(trips(("c", "oslo", 1, 1.0)))
    assert_same(tmp_path)
    assert not table.sync_delta()


def test_a_table_whose_only_commit_is_taken_back_is_empty(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, **SYNC})
    table.upsert(A)
    table.rollback()
    assert delta(tmp_path).to_pyarrow_table().num_rows == 0
    assert not table.sync_delta()
    table.upsert(B)
    assert_same(tmp_path)


def test_many_commits_without_the_option_are_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie_ds.sync.delta.changes._MOST_COMMITS", 3)
    table = HoodieTable(tmp_path, TRIPS)
    for number in range(8):
        table.upsert(trips((f"k{number % 7}", f"c{number % 3}", number, 1.0)))
        if number == 2:
            table.sync_delta()
    table.upsert(A, SYNC)
    assert_same(tmp_path)
    assert delta(tmp_path).version() == 1


def test_a_sync_gives_up_after_twenty_versions_of_other_processes(tmp_path: Path) -> None:
    HoodieTable(tmp_path, TRIPS).upsert(A)

    class Taken(LocalStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, b'{"protocol": {"writerFeatures": ["writtenByHudi"]}}')
            raise AlreadyExistsError(path)

    with pytest.raises(DeltaSyncError, match="other processes put 20 versions"):
        sync(open_table(Taken(str(tmp_path))), SystemClock(), RandomIds())

"""A writer of ours beside another engine, for the schedule explorer.

The other engine takes the lock that both know, as Hudi on the JVM does, and no decision. What it
carries out it has read when it planned it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import without_meta_columns
from hoodie_ds.errors import AlreadyExistsError
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, SimClock
from hoodie_ds.timeline.instant import Action, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import FILE_LOCK, OURS, manifest_number
from tests.faults import foreign
from tests.faults.pairs import DEAD_MS, WRITER, Impatient
from tests.faults.scenarios import BLOOM, COW, MOR
from tests.faults.schedules import Actor, Phase
from tests.faults.stream import Step, assert_well, begin, found, plain, run
from tests.faults.writers import BESIDE_OTHERS
from tests.tables import BUCKETS, TRIPS, VERSION, trips

ONE = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("o", "y", 1, 1.0))
TWO = trips(("a", "x", 2, 2.0), ("z", "x", 2, 2.0))
MINE = trips(("a", "x", 3, 3.0), ("n", "x", 3, 3.0))
TIPS = MINE.append_column("tip", pa.array([5.0, None]))

Wait = Callable[[], None]
Work = Callable[[FaultyStorage, Wait], None]


@contextmanager
def _locked(storage: FaultyStorage, wait: Wait):  # type: ignore[no-untyped-def]
    while True:
        try:
            storage.put_if_absent(FILE_LOCK, b"")
            break
        except AlreadyExistsError:
            wait()
    yield
    storage.delete(FILE_LOCK)


def _next(storage: FaultyStorage) -> str:
    latest = open_table(storage).load_timeline().latest_time
    assert latest is not None
    return following(latest)


def _put(storage: FaultyStorage, time: str, action: Action, state: State) -> None:
    storage.put_if_absent(foreign.step_path(storage, time, action, state), b"")


def _rows_of(storage: FaultyStorage, planned: FileSlice) -> bytes:
    """A base file of all rows of a slice; in these tables a partition has one file group."""
    rows = HoodieTable(storage.root, storage=storage).read()
    mine = rows.filter(pa.compute.equal(rows["city"], planned.group.partition_path))
    sink = pa.BufferOutputStream()
    pq.write_table(mine, sink)
    return bytes(sink.getvalue())


def _service(action: Action, done: Action) -> Work:
    def work(storage: FaultyStorage, wait: Wait) -> None:
        with _locked(storage, wait):
            time, slices = _next(storage), foreign.slices(storage, "x")
            clusters = action is Action.CLUSTERING
            plan = foreign.plan_clustering if clusters else foreign.plan_compaction
            plan(storage, time, slices)
            bodies = [_rows_of(storage, found) for found in slices]
        _put(storage, time, action, State.INFLIGHT)
        with _locked(storage, wait):
            stats, replaced = [], []
            for found_, rows in zip(slices, bodies, strict=True):
                group = found_.group
                if clusters:
                    replaced.append(group.file_id)
                    group = FileGroupId("x", "11111111-1111-1111-1111-111111111111-0")
                stats.append(_base_file(storage, group, time, rows))
            body = {
                "partitionToWriteStats": {"x": stats},
                "compacted": not clusters,
                "partitionToReplaceFileIds": {"x": replaced} if replaced else {},
                "extraMetadata": {},
                "operationType": "CLUSTER" if replaced else "COMPACT",
            }
            foreign.complete(storage, time, done, body)

    return work


def _base_file(
    storage: FaultyStorage, group: FileGroupId, time: str, body: bytes
) -> dict[str, object]:
    path = f"{group.partition_path}/{group.file_id}_9-9-9_{time}.parquet"
    storage.put_if_absent(path, body)
    count = pq.ParquetFile(pa.BufferReader(body)).metadata.num_rows
    return {
        "fileId": group.file_id, "path": path, "partitionPath": group.partition_path,
        "prevCommit": "null", "numWrites": count, "fileSizeInBytes": len(body),
    }  # fmt: skip


def _add_column(storage: FaultyStorage, wait: Wait) -> None:
    """Commit rows of a partition of its own, with one column more than the table has."""
    with _locked(storage, wait):
        time, table = _next(storage), HoodieTable(storage.root, storage=storage)
        schema = without_meta_columns(table.schema).append(pa.field("extra", pa.string()))
        for state in (State.REQUESTED, State.INFLIGHT):
            _put(storage, time, Action.COMMIT, state)
        group = FileGroupId("w", "00000000-1111-1111-1111-111111111111-0")
        rows = table.read().slice(0, 1).append_column("extra", [["dear"]])
        for name, value in {
            "_hoodie_commit_time": time, "_hoodie_partition_path": "w", "city": "w",
            "_hoodie_record_key": "e", "id": "e",
        }.items():  # fmt: skip
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, rows.schema.field(at), pa.array([value]))
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink)
        stat = _base_file(storage, group, time, bytes(sink.getvalue()))
        done = {
            "partitionToWriteStats": {"w": [stat]}, "operationType": "UPSERT", "compacted": False,
            "extraMetadata": {"schema": arrow_to_avro(schema, "trips")},
        }  # fmt: skip
        foreign.complete(storage, time, Action.COMMIT, done)


def _restore(storage: FaultyStorage, wait: Wait) -> None:
    """Take back all commits after the first, and whatever of them is pending."""
    with _locked(storage, wait):
        time = _next(storage)
        kept = open_table(storage).load_timeline().commits[0]
        _put(storage, time, Action.RESTORE, State.REQUESTED)
    _put(storage, time, Action.RESTORE, State.INFLIGHT)
    timeline = open_table(storage).load_timeline()
    later = [i.time for i in (*timeline.commits, *timeline.pending) if i.time > kept.time]
    gone = [gone for gone in later if gone != time]
    for status in storage.list("", recursive=True):
        if any(f"_{one}.parquet" in status.path for one in gone):
            storage.delete(status.path)
    foreign.take_off(storage, gone)
    for one in gone:
        storage.delete(f".hoodie/.temp/{one}")
    _put(storage, time, Action.RESTORE, State.COMPLETED)


def _upgrade(storage: FaultyStorage, wait: Wait) -> None:
    with _locked(storage, wait):
        foreign.upgrade(storage)


@dataclass(frozen=True)
class Beside:
    """A step of ours, and what another engine does beside it."""

    step: Step
    work: Work
    phases: tuple[Phase, ...]
    options: dict[str, str]
    before: tuple[Step, ...] = (Step(ONE),)


def _done(*paths: str) -> tuple[Phase, ...]:
    return Phase("plan"), Phase("carry out", Kind.PUT, paths)


ONE_GROUP = {BUCKETS: "1"}
BESIDES = {
    "compaction": Beside(
        Step(MINE),
        _service(Action.COMPACTION, Action.COMMIT),
        _done("*.compaction.inflight"),
        {**MOR, **ONE_GROUP},
    ),
    "clustering": Beside(
        Step(MINE),
        _service(Action.CLUSTERING, Action.REPLACE_COMMIT),
        _done("*.replacecommit.inflight", "*.clustering.inflight"),
        dict(BLOOM),
    ),
    "restore": Beside(
        Step(MINE),
        _restore,
        _done("*.restore.inflight"),
        dict(ONE_GROUP),
        (Step(ONE), Step(TWO)),
    ),
    "new column": Beside(Step(TIPS), _add_column, (Phase("commit"),), dict(ONE_GROUP)),
    "upgrade": Beside(Step(MINE), _upgrade, (Phase("upgrade"),), dict(ONE_GROUP)),
}


class BesidePlay:
    """A step beside another engine, ready to be explored."""

    def __init__(self, name: str, version: str) -> None:
        self.name, self.pair = name, BESIDES[name]
        given = {**TRIPS, **COW, **self.pair.options, **BESIDE_OTHERS, VERSION: version}
        self.opts = {key: value for key, value in given.items() if value}
        self.clock = SimClock()
        self.start = MemoryStorage(f"memory://beside-{name.replace(' ', '-')}", clock=self.clock)
        for number, step in enumerate(self.pair.before):
            run(self.start, self.opts, number, step, number, "s", clock=self.clock)

    def fresh(self) -> MemoryStorage:
        self.clock = SimClock()
        self.ended = self.came_first = False
        left = MemoryStorage(self.start.root, self.start.files, self.clock)
        self.clock.advance(DEAD_MS)
        return left

    @property
    def actors(self) -> tuple[Actor, Actor]:
        def write(storage: FaultyStorage, wait: Wait) -> None:
            pauses = Impatient(self.clock, wait)
            run(storage, self.opts, 0, self.pair.step, 10, "q", clock=self.clock, pauses=pauses)
            self.ended = True

        def beside(storage: FaultyStorage, wait: Wait) -> None:
            self.pair.work(storage, wait)
            listed = storage.list(OURS, recursive=True)
            checked = any(manifest_number(status.path) is not None for status in listed)
            self.came_first = not checked and not self.ended

        return Actor("a", write, WRITER), Actor("f", beside, self.pair.phases)

    def check(self, left: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        assert raised[1] is None
        if self.name == "upgrade":
            self._check_upgraded(left, raised[0])
            return
        base = list(plain(ONE.to_pylist()))
        after = self._after()
        restored = self.name == "restore"
        if raised[0] is None and (self.came_first or not restored):
            assert found(left) == after, "what was committed is not what is there"
        else:
            assert found(left) in (base, *([after] if restored else [self._others()]))
        if raised[0] is not None:  # Spark runs it again
            self.clock.advance(DEAD_MS)
            run(left, self.again(), 0, self.pair.step, 90, "q", clock=self.clock)
            assert found(left) == after, "the replay is not the model"
        self.clock.advance(DEAD_MS)
        if self.name != "clustering":  # of a file group that was replaced files stay
            begin(left, self.again(), self.pair.step.rows.schema, "last", clock=self.clock)
        assert_well(left, self.opts)

    def again(self) -> dict[str, str]:
        return {**self.opts, "hoodie.write.set.null.for.missing.columns": "true"}

    def _after(self) -> list[object]:
        mine = self.pair.step.rows.to_pylist()
        keys = {row["id"] for row in mine}
        rows = [row for row in ONE.to_pylist() if row["id"] not in keys]
        return list(plain([*rows, *mine, *self._theirs()]))

    def _others(self) -> list[object]:
        return list(plain([*ONE.to_pylist(), *self._theirs()]))

    def _theirs(self) -> list[dict[str, object]]:
        if self.name != "new column":
            return []
        return [{"id": "e", "city": "w", "ts": 1, "fare": 1.0, "extra": "dear"}]

    def _check_upgraded(self, left: MemoryStorage, error: BaseException | None) -> None:
        old = [path for path in left.files if path.startswith(".hoodie/2")]
        assert not old, "instants where nobody looks"
        moved = [path for path in left.files if path.startswith(".hoodie/timeline/2")]
        assert len([path for path in moved if path.endswith("commit")]) == (
            2 if error is None else 1
        )
        data = [path for path in left.files if path.endswith(".parquet")]
        assert len(data) == (3 if error is None else 2), "files that no commit names"

"""Cleans, in turns by us and by Apache Hudi on the JVM: each goes on from what the other says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.services.clean_planner import plan_clean
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.connect import storage_to_write
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.timeline import Timeline
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.rows import assert_same_rows
from tests.tables import TYPE, TYPES
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

_RETAINED = {"hoodie.clean.commits.retained": "1"}
_OPTIONS = {
    "hoodie.table.name": "cleaned",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    **_RETAINED,
}
_THEIRS = {
    **_OPTIONS,
    "hoodie.clean.automatic": "true",
    "hoodie.clean.async.enabled": "false",
}
_COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}


TABLES = by_day(
    [*((kind, "6") for kind in TYPES), ("MERGE_ON_READ", "9")],
    {(TYPES[0], "6"), ("MERGE_ON_READ", "9")},
)


def _rows(ids: str, city: str, ts: int) -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), "ts": pa.array([ts] * len(ids))})


class _Table:
    """A table that both write, read and clean."""

    def __init__(self, path: Path, kind: str, version: str, jvm: JvmHudi) -> None:
        self.path, self.kind, self.jvm, self.number = path, kind, jvm, 0
        self.ours = HoodieTable(str(path), {**_OPTIONS, TYPE: kind, TABLE_VERSION: version})

    def rows(self) -> pa.Table:
        self.number += 1
        return pa.concat_tables([_rows("abcd", "x", self.number), _rows("ef", "y", self.number)])

    def upsert(self) -> None:
        self.ours.upsert(self.rows())
        if self.kind == "MERGE_ON_READ":
            self.ours.compact()

    def their_upsert(self) -> None:
        compact = _COMPACT if self.kind == "MERGE_ON_READ" else {}
        self.jvm.write(self.path, self.rows(), {**_THEIRS, **compact, TYPE: self.kind})

    def agree(self) -> None:
        found = self.ours.read()
        assert found["ts"].to_pylist() == [self.number] * 6
        assert_same_rows(read_with_hudi_rs(self.path), found)
        assert_same_rows(self.jvm.read(self.path), found)

    @property
    def cleans(self) -> list[Instant]:
        return [i for i in self.ours.timeline.instants if i.action is Action.CLEAN]

    @property
    def cleaned(self) -> list[str]:
        """The instant times of completed cleans."""
        return [i.time for i in self.cleans if i.state is State.COMPLETED]

    @property
    def base_files(self) -> set[Path]:
        return {p for p in self.path.rglob("*.parquet") if ".hoodie" not in p.parts}

    def plan(self) -> list[Path]:
        """Leave the plan of a clean that nobody has executed; returns its files."""
        options = WriteOptions.parse({**_OPTIONS, "path": str(self.path)})
        storage = storage_to_write(options)
        context = ServiceContext(options, storage, SystemClock(), RandomIds())
        table = context.open_table()
        paths: list[Path] = []

        def planned(timeline: Timeline, _: str) -> bytes:
            plan = plan_clean(table, timeline, options.cleaning, 0)
            assert plan is not None
            paths.extend(self.path / path for path in plan.paths)
            return plan.to_bytes(storage.root)

        assert context.schedule(context.action(table, Action.CLEAN, "CLEAN"), planned) is not None
        return paths


@pytest.mark.parametrize(("kind", "version"), TABLES)
def test_each_cleans_on_where_the_other_ended(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    table = _Table(tmp_path / "t", kind, version, jvm_hudi)
    for _ in range(4):
        table.upsert()
    (cleaned,) = table.ours.clean()
    assert not any((table.path / path).exists() for path in cleaned.plan.paths)
    table.agree()

    before, left = table.cleans, table.base_files
    table.their_upsert()
    table.their_upsert()
    assert len(table.cleans) > len(before)
    assert left - table.base_files  # it deleted files that we had kept
    table.agree()

    before = table.cleans
    table.upsert()
    table.upsert()
    assert table.ours.clean()
    assert len(table.cleans) == len(before) + 1
    groups = {(path.parent, path.name.split("_")[0]) for path in table.base_files}
    assert len(table.base_files) <= 2 * len(groups)  # what is new, and what readers began with
    table.agree()


@pytest.mark.parametrize(("kind", "version"), TABLES)
def test_each_finishes_what_the_other_has_planned(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    table = _Table(tmp_path / "t", kind, version, jvm_hudi)
    for _ in range(4):
        table.upsert()
    paths = table.plan()
    (pending,) = table.cleans
    assert pending.state is State.REQUESTED
    assert all(path.exists() for path in paths)
    table.their_upsert()
    assert pending.time in table.cleaned
    assert not any(path.exists() for path in paths)
    table.agree()

    table.their_upsert()
    theirs = table.cleans[-1]
    assert theirs.time > pending.time
    for pattern in (f"{theirs.time}*.clean", f"{theirs.time}.clean.inflight"):
        (file,) = (table.path / ".hoodie").rglob(pattern)
        file.unlink()
    table.upsert()
    table.ours.clean()
    assert theirs.time in table.cleaned
    table.agree()
    table.their_upsert()
    table.agree()

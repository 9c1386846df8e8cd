"""Rescaling: rewrites a table with a bucket index into another number of buckets.

One batch overwrites the table with its own snapshot, as Hudi does it (RFC-89). The new number is
put under the batch's instant before its commit (`put_rescaled`), so rows and buckets change in one
step, whichever process reads or dies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import PARTITION_PATH, RECORD_KEY
from hoodie_ds.config.bucket_rules import BucketRules
from hoodie_ds.config.enums import Operation
from hoodie_ds.config.index_options import IndexOptions
from hoodie_ds.errors import (
    CorruptFileError,
    HoodieError,
    OptionError,
    TimelineError,
    UnsupportedTableError,
)
from hoodie_ds.index.bucket_index import BucketIndex
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.services.context import Progress
from hoodie_ds.services.results import counted, size_text
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.records import are_deletes, check_stored_keys
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.slices.file_slice_reader import FileSliceReader
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.hashing_config import (
    HashingConfig,
    complete_hashing_config,
    put_rescaled,
)
from hoodie_ds.table.table import open_table
from hoodie_ds.table.table_schema import table_schema
from hoodie_ds.timeline.instant import Action
from hoodie_ds.transaction.open_instant import open_instant

_PLANNED: Final = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


@dataclass(frozen=True, slots=True)
class BucketRescale:
    """A change of the number of buckets that was made, or would be; false if there is none.

    Parameters
    ----------
    instant_time : str or None
        Its commit; None if it is not made.
    before, after : int
        Buckets of each partition, but for those that rules match.
    rules : str
        Rules of the partitions that have other numbers, from then on; empty if there are none.
    groups, size : int
        File groups that are rewritten, and bytes of them.
    partitions : int
        Partitions that they are in.
    rows : int
        Rows that were rewritten.
    changes : bool
        Whether there is anything to change.
    """

    instant_time: str | None
    before: int
    after: int
    rules: str
    groups: int = 0
    size: int = 0
    partitions: int = 0
    rows: int = 0
    changes: bool = True

    def __bool__(self) -> bool:
        return self.changes

    def __str__(self) -> str:
        ruled = f", but {self.rules}" if self.rules else ""
        if not self.changes:
            return f"the table has {counted(self.after, 'bucket')}{ruled} already, nothing to do"
        where = f"{counted(self.groups, 'file group')} ({size_text(self.size)})"
        what = f"from {self.before:,} to {counted(self.after, 'bucket')} a partition{ruled}"
        if self.instant_time is None:
            return f"{where} of {counted(self.partitions, 'partition')} rewritten, {what}"
        return f"rescaled at {self.instant_time}, {what}, {counted(self.rows, 'row')} rewritten"


@dataclass(frozen=True)
class BucketRescaler:
    """Changes the number of buckets of one table.

    `progress` gets the bytes of file groups read so far, and of all.
    """

    coordinator: Coordinator
    num_buckets: int
    rules: BucketRules | None = None
    progress: Progress | None = None

    @classmethod
    def of(
        cls,
        coordinator: Coordinator,
        num_buckets: int,
        rules: BucketRules | None,
        progress: Progress | None = None,
    ) -> BucketRescaler:
        """Return one that overwrites the table with its unchanged rows."""
        options = replace(
            coordinator.options,
            operation=Operation.INSERT_OVERWRITE_TABLE,
            combine_before_insert=False,
            allow_empty_commit=True,  # a table without rows is rescaled too
        )
        return cls(replace(coordinator, options=options), num_buckets, rules, progress)

    def rescale(self, *, dry: bool = False) -> BucketRescale:
        """Rewrite the table's rows into their new buckets, as one commit; only report if `dry`.

        Raises
        ------
        UnsupportedTableError
            The table has no bucket index, or its keys cannot be made anew as they are stored.
        TimelineError
            A compaction or clustering is pending.
        WriteConflictError
            Others wrote meanwhile; nothing was changed.
        """
        table = open_table(self._storage)
        timeline = table.load_timeline()
        columns = table_schema(table, timeline) or pa.schema([])
        if dry:
            plan = self.coordinator.preview(columns, timeline)
            return self._would(plan)
        batch = self.coordinator.begin(columns)
        would = self._would(batch.plan)
        if not would:
            return would
        time = open_instant(batch.pending)
        buckets = self._buckets_of(batch.plan)
        put_rescaled(self._storage, time, _config(buckets), self._config)
        rescaled = replace(buckets, num_buckets=self.num_buckets, rules=self.rules)
        plan = replace(batch.plan, index=BucketIndex(rescaled), rescales=True)
        batch, before = replace(batch, plan=plan), batch.plan
        try:
            message, rows = _rewritten(batch, before, self.progress)
            result = self.coordinator.commit([message])
        except HoodieError:
            # Otherwise it looks alive to others until its heartbeat expires.
            self.coordinator.abort([TaskCommitMessage(batch, None, time)])
            raise
        complete_hashing_config(
            open_table(self._storage), table.load_timeline(), self.coordinator.clock.now_ms()
        )
        return replace(would, instant_time=result.instant_time or time, rows=rows)

    @property
    def _storage(self) -> Storage:
        return self.coordinator.storage

    @property
    def _config(self) -> HashingConfig:
        return HashingConfig(str(self.rules or ""), self.num_buckets)

    def _would(self, plan: WritePlan) -> BucketRescale:
        """Return what a rescale would change, or refuse it."""
        before = _config(self._buckets_of(plan))
        if before == self._config:
            return BucketRescale(
                None, self.num_buckets, self.num_buckets, before.expressions, changes=False
            )
        for instant in plan.timeline.pending:
            if instant.action in _PLANNED:
                raise TimelineError(
                    f"{self._storage.root}: {instant.action.value} {instant.time} is pending, and "
                    "the new buckets replace its file groups; execute it first by "
                    f"{plan.table.command('compact')}"
                )
        slices = _slices(plan)
        return BucketRescale(
            None,
            before.default_buckets,
            self.num_buckets,
            self._config.expressions,
            groups=len(slices),
            size=sum(slice_.size for slice_ in slices),
            partitions=len({slice_.group.partition_path for slice_ in slices}),
        )

    def _buckets_of(self, plan: WritePlan) -> Buckets:
        if not isinstance(plan.index, BucketIndex):
            raise UnsupportedTableError(
                f"table {plan.table.properties.name!r} has no buckets to rescale: its index is "
                f"{plan.index.kind.value if plan.index else 'none'}"
            )
        return plan.index.buckets


def new_buckets(num_buckets: int, rules: str | None) -> tuple[int, BucketRules | None]:
    """Parse a caller's number of buckets and rules; `OptionError` if they are malformed."""
    found = (
        IndexOptions.num_buckets.kind.parse(str(num_buckets)) if type(num_buckets) is int else None
    )
    if found is None:
        raise OptionError(
            "num_buckets", num_buckets, f"give {IndexOptions.num_buckets.kind.allowed}"
        )
    if not rules:
        return num_buckets, None
    parsed = BucketRules.parse(rules)
    if parsed is None:
        raise OptionError("rules", rules, f"give {IndexOptions.bucket_rules.kind.allowed}")
    return num_buckets, parsed


def _config(buckets: Buckets) -> HashingConfig:
    return HashingConfig(str(buckets.rules or ""), buckets.num_buckets)


def _slices(plan: WritePlan) -> list[FileSlice]:
    view = plan.whole_view
    return list(view.slices_among(view.data_files()))


def _rewritten(
    batch: Batch, before: WritePlan, progress: Progress | None
) -> tuple[TaskCommitMessage, int]:
    """Write the rows of the old table into new file groups; return their number too."""
    read = 0

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for piece in _pieces(before, progress):
            read += piece.num_rows
            yield from piece.to_batches()

    message = write_task(batch, TaskId(), None, rows(), sole_writer=True)
    written = sum(status.stat.num_inserts for status in message.statuses)
    if written != read:
        raise CorruptFileError(
            f"{batch.table.storage.root}: of {read:,} rows {written:,} were written to the new "
            "buckets, so nothing was changed",
            f"run {batch.table.command('verify')}, as keys may be stored twice",
        )
    return message, read


def _pieces(plan: WritePlan, progress: Progress | None) -> Iterator[pa.Table]:
    """Rows of all file slices, in pieces; refuses keys that would be made differently."""
    reader, names = plan.slice_reader(plan.view), plan.schema.names
    stored = [RECORD_KEY, PARTITION_PATH] if plan.table.properties.populate_meta_fields else []
    slices = _slices(plan)
    for piece in chain.from_iterable(_followed(reader, slices, [*stored, *names], progress)):
        if are_deletes(plan, piece).any():
            raise UnsupportedTableError(
                f"table {plan.table.properties.name!r} has rows in base files that are "
                "marked as deletes, which readers return and a write would drop; "
                "delete their keys, or upsert them without the mark, then rescale"
            )
        check_stored_keys(plan, piece)
        yield piece.select(names)


def _followed(
    reader: FileSliceReader,
    slices: Sequence[FileSlice],
    columns: Sequence[str],
    progress: Progress | None,
) -> Iterator[Iterator[pa.Table]]:
    """Yield the rows slice by slice, and report progress."""
    total, done = sum(slice_.size for slice_ in slices), 0
    for slice_ in slices:
        yield reader.read(slice_, columns)
        done += slice_.size
        if progress is not None:
            progress(done, total)

"""Which file slices a compaction merges, and when one is due.

The rules are those of Apache Hudi (``ScheduleCompactionActionExecutor``,
``HoodieCompactionPlanGenerator`` and the strategies in ``org.apache.hudi.table.action.compact``):
file slices with log files, none of which another plan names, in the order of a strategy up to a
target of bytes to be read and written. The plan records the partitions of what did not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, takewhile
from typing import Final

from hoodie_ds.config.enums import CompactionStrategy, CompactionTrigger
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.slices.uncommitted_logs import is_uncommitted
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import FileSystemView, WholeView
from hoodie_ds.table.live_files import newest_files
from hoodie_ds.table.planned_services import compacting, planned_groups
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation, CompactionPlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.rollback import UNDONE_ACTIONS

_SECONDS: Final = "%Y%m%d%H%M%S"
_LOG_FILES: Final = "TOTAL_LOG_FILES"
_LOG_BYTES: Final = "TOTAL_LOG_FILES_SIZE"
_IO_MB: Final = "TOTAL_IO_MB"


@dataclass(frozen=True)
class CompactionPlanner:
    """Plans compactions of one table."""

    table: Table
    options: WriteOptions

    def is_due(self, timeline: Timeline, time: str) -> bool:
        """Whether the trigger asks for a compaction; `time` is the instant time of the plan."""
        compaction = self.options.compaction
        requested = max((padded(i.time) for i in timeline.pending_compactions), default="")
        after_request = compaction.trigger is CompactionTrigger.NUM_COMMITS_AFTER_LAST_REQUEST
        last = max(_last_compaction(timeline), requested if after_request else "")
        since = [
            found.time
            for found in takewhile(lambda i: padded(i.time) > last, timeline.commits_backwards())
            if found.action is Action.DELTA_COMMIT
        ]
        if not since and not last:
            return False
        many = len(since) >= compaction.delta_commits
        start = last or padded(since[-1])
        long = _seconds_between(start, padded(time)) >= compaction.delta_seconds
        match compaction.trigger:
            case CompactionTrigger.TIME_ELAPSED:
                return long
            case CompactionTrigger.NUM_AND_TIME:
                return many and long
            case CompactionTrigger.NUM_OR_TIME:
                return many or long
            case _:
                return many

    def plan(self, timeline: Timeline) -> CompactionPlan | None:
        """Choose what to compact; None if there is nothing, or a write is pending.

        The log files of a pending write may belong to slices that would be compacted without them.
        Raises if a committed file is missing: a plan without it could not be carried out once it is
        back.
        """
        storage = self.table.storage
        if holding_back(self.table, timeline):
            return None
        view = WholeView(storage, timeline, self.options.verify_checksums)
        planned = self._planned(timeline)
        free = (slice_ for slice_ in self._slices(view) if slice_.group not in planned)
        operations = list(filter(None, (self._operation(view, slice_) for slice_ in free)))
        chosen = self._chosen(operations)
        if not chosen:
            return None
        taken = {(one.partition_path, one.file_id) for one in chosen}
        left = {o.partition_path for o in operations if (o.partition_path, o.file_id) not in taken}
        return CompactionPlan(tuple(chosen), tuple(sorted(left)))

    def _planned(self, timeline: Timeline) -> set[FileGroupId]:
        """File groups that other plans will rewrite."""
        storage = self.table.storage
        others = (i for i in timeline.pending if i.action is not Action.COMPACTION)
        groups = chain.from_iterable(planned_groups(storage, instant) for instant in others)
        return {*compacting(storage, timeline), *groups}

    def _slices(self, view: FileSystemView) -> Iterator[FileSlice]:
        """Slices that may have log files.

        If the table was compacted before, commits and the last plan say in which partitions they
        are.
        """
        missing = self._missing_partitions(view.timeline)
        if missing is None:
            yield from view.slices_among(view.data_files())
            return
        files = (f.path.rpartition("/") for f in newest_files(view.storage, view.timeline))
        partitions = {folder for folder, _, name in files if LogFileName.parse(name)}
        for partition in sorted(partitions.union(missing)):
            yield from view.latest_slices(partition)

    def _missing_partitions(self, timeline: Timeline) -> Sequence[str] | None:
        """Partitions that the last plan left out; None if there is none that can be read."""
        times = (_last_compaction(timeline), *(i.time for i in timeline.pending_compactions))
        last = max(times, key=padded)
        if last:
            path = instant_path(self.table.instant(last, Action.COMPACTION, State.REQUESTED))
            with suppress(NotFoundError, CorruptFileError):
                plan = CompactionPlan.from_bytes(self.table.storage.read(path), path)
                return plan.missing_partitions
        return None

    def _operation(self, view: FileSystemView, slice_: FileSlice) -> CompactionOperation | None:
        """What is to be done with a slice; None if no commit has written a log file of it."""
        logs = [log for log in slice_.logs if not is_uncommitted(view, log)]
        if not logs:
            return None
        base = slice_.base
        log_bytes = sum(log.size for log in logs)
        read_mb = ((base.size if base else 0) + log_bytes) >> 20
        write_mb = (base.size if base else self.options.parquet_max_file_bytes) >> 20
        return CompactionOperation(
            partition_path=slice_.group.partition_path,
            file_id=slice_.group.file_id,
            base_instant=slice_.base_instant,
            base_file=str(base.name) if base else None,
            log_files=tuple(log.file_name for log in logs),
            metrics={
                _LOG_FILES: float(len(logs)),
                _IO_MB: float(read_mb + write_mb),
                "TOTAL_IO_READ_MB": float(read_mb),
                _LOG_BYTES: float(log_bytes),
                "TOTAL_IO_WRITE_MB": float(write_mb),
            },
        )

    def _chosen(self, operations: Iterable[CompactionOperation]) -> list[CompactionOperation]:
        """The operations that the strategy selects, in its order."""
        compaction = self.options.compaction
        match compaction.strategy:
            case CompactionStrategy.UNBOUNDED:
                return list(operations)
            case CompactionStrategy.LOG_FILE_SIZE:
                operations = _largest(operations, _LOG_BYTES, compaction.log_bytes)
            case CompactionStrategy.LOG_FILE_NUM:
                operations = _largest(operations, _LOG_FILES, compaction.log_files)
        chosen, left_mb = [], float(compaction.target_io_mb)
        for one in operations:
            chosen.append(one)
            left_mb -= one.metrics[_IO_MB]
            if left_mb <= 0:
                break
        return chosen


def _last_compaction(timeline: Timeline) -> str:
    """Time of the last compaction that completed: in such tables it alone is a ``commit``."""
    completed = (i for i in timeline.commits_backwards() if i.action is Action.COMMIT)
    last = next(completed, None)
    return "" if last is None else padded(last.time)


def holding_back(table: Table, timeline: Timeline) -> list[Instant]:
    """Return the pending writes during which no compaction is planned: any slice may be theirs."""
    writes = (instant for instant in timeline.pending if instant.action in UNDONE_ACTIONS)
    return [instant for instant in writes if not planned_groups(table.storage, instant)]


def _seconds_between(earlier: str, later: str) -> float:
    first, last = (datetime.strptime(time[:14], _SECONDS) for time in (earlier, later))
    return (last - first).total_seconds()


def _largest(
    operations: Iterable[CompactionOperation], metric: str, least: int
) -> list[CompactionOperation]:
    enough = [one for one in operations if one.metrics[metric] >= least]
    return sorted(enough, key=lambda one: -one.metrics[metric])

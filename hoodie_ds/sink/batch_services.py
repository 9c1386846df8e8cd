"""The table services that a batch brings along.

A pending compaction is found when the batch begins, carried out by its tasks once their own rows
are written, and completed before its commit. What else is due follows the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, count

import xxhash

from hoodie_ds.config.service_switches import Service
from hoodie_ds.environment import Clock
from hoodie_ds.services.after_commit import AfterCommit, follow_up
from hoodie_ds.services.boundary import ServiceFailure, attempted
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.compaction.share import (
    CompactionShare,
    do_share,
    drop_claims,
    share_of,
)
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId, WriteResult
from hoodie_ds.sink.metrics import WriteMetrics
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.transaction.completion import find_completed
from hoodie_ds.transaction.exclusive_commit import alive


@dataclass(frozen=True)
class TaskIds:
    """Ids that follow from a batch's attempt and the task's, so that no other task has them."""

    attempt: str
    task: TaskId
    _numbers: count[int]

    def unique(self) -> str:
        """Return 32 lower-case hexadecimal digits."""
        named = f"{self.attempt}/{self.task.stage}/{self.task.attempt}/{next(self._numbers)}"
        return xxhash.xxh3_128_hexdigest(named.encode())


def share_for(plan: WritePlan, found: Mapping[str, frozenset[str]]) -> CompactionShare | None:
    """Find what the tasks of a stream's batch have to do of a pending compaction.

    Parameters
    ----------
    plan : WritePlan
        What the batch writes.
    found : mapping of str to frozenset of str
        What `left_over` found before the timeline was loaded.

    Returns
    -------
    CompactionShare or None
        None if the batch brings no compaction along, or none is pending.
    """
    shares: list[CompactionShare | None] = [None]

    def choose() -> None:
        shares.append(share_of(plan.table.storage, plan.timeline, found))

    if Service.COMPACTION in plan.options.services.of_streams:
        attempted(Service.COMPACTION, plan.table.storage.root, "", choose)
    return shares[-1]


def with_services(message: TaskCommitMessage, task: TaskId, clock: Clock) -> TaskCommitMessage:
    """Do what is left of the batch's share of a compaction; a failure is not the batch's.

    Parameters
    ----------
    message : TaskCommitMessage
        The task's outcome; its rows are durable.
    task : TaskId
        This attempt.
    clock : Clock
        For the time among the metrics.

    Returns
    -------
    TaskCommitMessage
        With what was done among its metrics, and with what went wrong.
    """
    batch, time = message.batch, message.instant_time
    if batch.share is None or (batch.pending.is_shared and time is None):
        return message  # beside other writers a task without an instant cannot keep it alive
    ids = TaskIds(batch.attempt, task, count())
    context = ServiceContext(batch.options, batch.table.storage, clock, ids)
    started_ms = clock.now_ms()
    with nullcontext() if time is None else alive(batch.pending, time):
        outcome = do_share(
            context, batch.table, batch.timeline, batch.share, batch.attempt, task.partition
        )
    failed = () if outcome.failure is None else (outcome.failure,)
    metrics = replace(
        message.metrics,
        num_compacted=outcome.done,
        num_failed_services=len(failed),
        service_ms=clock.now_ms() - started_ms,
    )
    return replace(message, metrics=metrics, failed_services=failed)


def with_all_metrics(
    written: Sequence[TaskCommitMessage], reported: Sequence[TaskCommitMessage]
) -> list[TaskCommitMessage]:
    """Return the messages of tasks that had rows, with the metrics of the others in the first.

    Parameters
    ----------
    written : sequence of TaskCommitMessage
        From tasks that had rows; at least one.
    reported : sequence of TaskCommitMessage
        From all tasks, of which those without rows may have done a part of a service.
    """
    first, *rest = written
    others = (message.metrics for message in reported if message.instant_time is None)
    return [replace(first, metrics=WriteMetrics.total([first.metrics, *others])), *rest]


def with_failures(result: WriteResult, reported: Iterable[TaskCommitMessage]) -> WriteResult:
    """Return the result of a batch with what failed in its tasks, before what failed afterwards.

    Parameters
    ----------
    result : WriteResult
        From `ServicesOfBatch.follow_up`, or of a batch that made no commit.
    reported : iterable of TaskCommitMessage
        From all tasks.
    """
    of_tasks = chain.from_iterable(message.failed_services for message in reported)
    return replace(result, failed_services=(*of_tasks, *result.failed_services))


@dataclass(frozen=True, slots=True)
class BeforeCommit:
    """What became of a pending compaction before the commit of a batch.

    Parameters
    ----------
    completed : str or None
        Instant time of the compaction, if it is complete.
    failure : ServiceFailure or None
        What kept it from that.
    """

    completed: str | None = None
    failure: ServiceFailure | None = None


@dataclass(frozen=True)
class ServicesOfBatch:
    """What the driver does for the services of a batch.

    Parameters
    ----------
    context : ServiceContext
        Where and how services run.
    messages : sequence of TaskCommitMessage
        From the batch's tasks, as `with_all_metrics` returns them.
    """

    context: ServiceContext
    messages: Sequence[TaskCommitMessage]

    @property
    def _is_open(self) -> bool:
        """Whether the batch's instant waits for further batches."""
        message, batch = self.messages[0], self.messages[0].batch
        number, spanned = batch.pending.batches_before + 1, batch.options.batches_per_commit
        return message.batch_id is not None and number < spanned

    def complete_compaction(self) -> BeforeCommit:
        """Complete the compaction, if the tasks have done all that was left of it.

        Before the commit of the batch, which names log files after that compaction: hudi-rs reads
        those only where it is complete.
        """
        batch, share = self.messages[0].batch, self.messages[0].batch.share
        if share is None or self._is_open:
            return BeforeCommit()
        compactor, time = Compactor(self.context), str(self.messages[0].instant_time)
        instant = batch.table.instant(share.time, Action.COMPACTION, State.INFLIGHT)
        completed: list[str] = []

        def complete() -> None:
            if compactor.complete(instant, compactor.plan_of(instant)):
                completed.append(share.time)
            else:
                drop_claims(batch.table.storage, share.time)

        with alive(batch.pending, time):
            failure = attempted(Service.COMPACTION, batch.table.storage.root, share.time, complete)
        return BeforeCommit(completed[0] if completed else None, failure)

    def follow_up(
        self, result: WriteResult, commit: Instant | None, before: BeforeCommit
    ) -> WriteResult:
        """Do what is due after a commit, unless its instant is open for further batches.

        Parameters
        ----------
        result : WriteResult
            Of the commit.
        commit : Instant or None
            The instant; None if the batch was part of the table before.
        before : BeforeCommit
            From `complete_compaction`.

        Returns
        -------
        WriteResult
            With the services that failed on the driver.
        """
        message, batch = self.messages[0], self.messages[0].batch
        failed = () if before.failure is None else (before.failure,)
        if self._is_open or commit is None:
            return replace(result, failed_services=failed)
        timeline = batch.timeline
        if before.completed:
            planned = batch.table.instant(before.completed, Action.COMPACTION, State.INFLIGHT)
            timeline = timeline.with_joined(find_completed(batch.table.storage, planned))
        timeline = timeline.with_joined(commit)
        is_stream = message.batch_id not in (None, batch.given_id)
        after = AfterCommit(self.context, batch.table, timeline, is_stream)
        return replace(result, failed_services=(*failed, *follow_up(after, batch.services)))

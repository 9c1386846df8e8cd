"""The table services that a batch runs.

The batch finds a pending compaction when it begins; its tasks execute it once their own rows are
written, and it is completed before the batch's commit. Other due services follow the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, count

import xxhash

from hoodie_ds.config.service_switches import Service
from hoodie_ds.environment import Clock
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.compaction.share import (
    CompactionShare,
    do_share,
    drop_claims,
    share_of,
)
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.failures import ServiceFailure, attempted
from hoodie_ds.services.post_commit import AfterCommit, catch_up, follow_up
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId, WriteMetrics, WriteResult
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.transaction.completion import find_completed
from hoodie_ds.transaction.exclusive_commit import heartbeating


@dataclass(frozen=True)
class TaskIds:
    """Ids derived from a batch's attempt and the task's, so that no other task has them."""

    attempt: str
    task: TaskId
    _numbers: count[int]

    def unique(self) -> str:
        """Return 32 lower-case hexadecimal digits."""
        named = f"{self.attempt}/{self.task.stage}/{self.task.attempt}/{next(self._numbers)}"
        return xxhash.xxh3_128_hexdigest(named.encode())


def share_for(plan: WritePlan, found: Mapping[str, frozenset[str]]) -> CompactionShare | None:
    """Find the work of a stream's batch on a pending compaction; None if there is none.

    `found` is from `left_over`, before the timeline was loaded.
    """
    shares: list[CompactionShare | None] = [None]

    def choose() -> None:
        shares.append(share_of(plan.table.storage, plan.timeline, found))

    if Service.COMPACTION in plan.options.services.of_streams:
        attempted(Service.COMPACTION, plan.table.storage.root, "", choose)
    return shares[-1]


def with_services(message: TaskCommitMessage, task: TaskId, clock: Clock) -> TaskCommitMessage:
    """Execute the rest of the batch's share of a compaction, once the task's rows are durable.

    The message gets its metrics and its failure, which does not fail the batch.
    """
    batch, time = message.batch, message.instant_time
    if batch.share is None or (batch.pending.concurrency.is_shared and time is None):
        return message  # among other writers a task without an instant cannot keep it alive
    ids = TaskIds(batch.attempt, task, count())
    context = ServiceContext(batch.plan.options, batch.plan.table.storage, clock, ids)
    started_ms = clock.now_ms()
    with nullcontext() if time is None else heartbeating(batch.pending, time):
        outcome = do_share(
            context,
            batch.plan.table,
            batch.plan.timeline,
            batch.share,
            batch.attempt,
            task.partition,
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
    """Return the messages of tasks with rows, with the metrics of the others in the first.

    Tasks without rows may have executed a part of a service.
    """
    first, *rest = written
    others = (message.metrics for message in reported if message.instant_time is None)
    return [replace(first, metrics=WriteMetrics.total([first.metrics, *others])), *rest]


def with_failures(result: WriteResult, reported: Iterable[TaskCommitMessage]) -> WriteResult:
    """Return a batch's result with the failures of its tasks, before those of the driver."""
    of_tasks = chain.from_iterable(message.failed_services for message in reported)
    return replace(result, failed_services=(*of_tasks, *result.failed_services))


@dataclass(frozen=True, slots=True)
class BeforeCommit:
    """The time of the compaction completed before the commit of a batch, or its failure."""

    completed: str | None = None
    failure: ServiceFailure | None = None


@dataclass(frozen=True)
class ServicesOfBatch:
    """Runs the services of a batch on the driver; `messages` are from `with_all_metrics`."""

    context: ServiceContext
    messages: Sequence[TaskCommitMessage]

    @property
    def _is_open(self) -> bool:
        """Whether the batch's instant waits for further batches."""
        message, batch = self.messages[0], self.messages[0].batch
        number, spanned = batch.pending.batches_before + 1, batch.plan.options.batches_per_commit
        return message.batch_id is not None and number < spanned

    def complete_compaction(self) -> BeforeCommit:
        """Complete the compaction, if the tasks have finished it.

        Before the commit of the batch, which names log files after that compaction: hudi-rs reads
        those only if it is complete.
        """
        batch, share = self.messages[0].batch, self.messages[0].batch.share
        if share is None or self._is_open:
            return BeforeCommit()
        compactor, time = Compactor(self.context), str(self.messages[0].instant_time)
        instant = batch.plan.table.instant(share.time, Action.COMPACTION, State.INFLIGHT)
        completed: list[str] = []

        def complete() -> None:
            if compactor.complete(instant, compactor.plan_of(instant)):
                completed.append(share.time)
            else:
                drop_claims(batch.plan.table.storage, share.time)

        with heartbeating(batch.pending, time):
            failure = attempted(
                Service.COMPACTION, batch.plan.table.storage.root, share.time, complete
            )
        return BeforeCommit(completed[0] if completed else None, failure)

    def follow_up(
        self, result: WriteResult, commit: Instant | None, before: BeforeCommit
    ) -> WriteResult:
        """Run the services due after a commit, unless its instant is open for further batches.

        `commit` is None if the batch was part of the table before: only followers may be behind.
        """
        message, batch = self.messages[0], self.messages[0].batch
        failed = () if before.failure is None else (before.failure,)
        if commit is None:
            missed = catch_up(self.context, batch.plan.table)
            return replace(result, failed_services=(*failed, *missed))
        if self._is_open:
            return replace(result, failed_services=failed)
        timeline = batch.plan.timeline
        if before.completed:
            planned = batch.plan.table.instant(before.completed, Action.COMPACTION, State.INFLIGHT)
            timeline = timeline.with_joined(find_completed(batch.plan.table.storage, planned))
        timeline = timeline.with_joined(commit)
        is_stream = message.batch_id not in (None, batch.given_id)
        after = AfterCommit(self.context, batch.plan.table, timeline, is_stream)
        return replace(result, failed_services=(*failed, *follow_up(after, batch.services)))

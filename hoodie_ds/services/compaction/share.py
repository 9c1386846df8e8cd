"""The part of a pending compaction that the tasks of one batch do, as Flink's operators do it.

A batch finds the plan on the timeline that it has loaded anyway, and the results among the files
that its recovery has listed. It gives its tasks the remaining operations, and the driver completes
the compaction before it commits the batch. So no committed log file is named after an incomplete
plan, which hudi-rs would not read. A task takes an operation by a claim that holds the batch's
attempt: no two tasks of a batch do the same, and the next try of a dead task does what that had
claimed. A task that has spent its time leaves the rest to the next batch. Results are on storage,
so that they outlive the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import (
    AlreadyExistsError,
    CorruptFileError,
    NotFoundError,
    TimelineError,
)
from hoodie_ds.services.compaction.executor import CompactionExecutor
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.failures import ServiceFailure, attempted
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.planned_services import plan_of
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation, CompactionPlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import (
    compacted_path,
    compaction_claim_path,
    compaction_claims,
)
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.open_instant import begin_plan

_PLANS_KEPT = 8


@dataclass(frozen=True, slots=True)
class CompactionShare:
    """The remaining operations of one pending compaction."""

    time: str  # of the plan's instant
    operations: tuple[CompactionOperation, ...]  # those without a result


@dataclass(slots=True)
class ShareOutcome:
    """What one task did of a share."""

    done: int = 0  # number of operations
    failure: ServiceFailure | None = None  # why it did no more


def share_of(
    storage: Storage, timeline: Timeline, found: Mapping[str, frozenset[str]]
) -> CompactionShare | None:
    """Return what is left of the oldest pending compaction; None if there is none.

    `found` is the result of `left_over`. Raises `NotFoundError` if the plan was cancelled
    meanwhile.
    """
    pending = next(iter(timeline.pending_compactions), None)
    if pending is None:
        return None
    time, done = pending.time, found.get(pending.time, frozenset())
    left = (
        one
        for one in _plan(storage, pending.at(State.REQUESTED)).operations
        if compacted_path(time, one.partition_path, one.file_id) not in done
    )
    return CompactionShare(time, tuple(left))


@lru_cache(maxsize=_PLANS_KEPT)
def _plan(storage: Storage, requested: Instant) -> CompactionPlan:
    """Read a plan, which never changes."""
    return plan_of(storage, requested, CompactionPlan.from_bytes)


def do_share(
    context: ServiceContext,
    table: Table,
    timeline: Timeline,
    share: CompactionShare,
    attempt: str,
    number: int,
) -> ShareOutcome:
    """Do operations of a share until others have claimed the rest, or the time is spent.

    At least one is done, unless all are claimed. One that fails is the last. The number of the task
    is the same for each of its tries; each task begins with another operation.
    """
    outcome, clock = ShareOutcome(), context.clock
    until_ms = clock.now_ms() + 1000 * context.options.compaction.max_seconds_per_batch
    executor = CompactionExecutor(context, table, share.time, timeline)
    start = number % len(share.operations) if share.operations else 0
    for one in (*share.operations[start:], *share.operations[:start]):
        claim = compaction_claim_path(share.time, attempt, one.partition_path, one.file_id)
        work: Callable[[], None] = partial(_do, outcome, executor, one, claim, number)
        root = context.storage.root
        outcome.failure = attempted(Service.COMPACTION, root, share.time, work)
        if outcome.failure is not None or (outcome.done and clock.now_ms() >= until_ms):
            break
    return outcome


def _do(
    outcome: ShareOutcome,
    executor: CompactionExecutor,
    one: CompactionOperation,
    claim: str,
    number: int,
) -> None:
    """Do an operation, unless another task of the batch has claimed it."""
    storage, own = executor.context.storage, str(number).encode()
    try:
        storage.put_if_absent(claim, own)
    except AlreadyExistsError:
        if storage.read(claim) != own:
            return
        # An earlier try of this task has died, maybe during this operation.
    begin_plan(storage, executor.table.instant(executor.time, Action.COMPACTION, State.INFLIGHT))
    try:
        executor.execute(one)
    except (CorruptFileError, NotFoundError, TimelineError):
        # Others may have completed or cancelled the plan, and a clean deleted what it merged.
        if executor.table.load_timeline().is_pending(executor.time):
            raise
    else:
        outcome.done += 1


def drop_claims(storage: Storage, time: str) -> None:
    """Delete the claims of batches whose tasks have ended, so that they do not pile up.

    Claims of another writer's batch go too. Two of its tasks may then merge the same file group, of
    which the first result counts.
    """
    storage.delete(compaction_claims(time))

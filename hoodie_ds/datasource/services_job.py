"""Table services as a job on the executors, next to a stream or instead of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from hoodie_ds.config.enums import TableType
from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.datasource.builders import write_settings
from hoodie_ds.datasource.task import in_worker
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.errors import TimelineError
from hoodie_ds.inspection.arguments import options as given_options
from hoodie_ds.services.archiving import archive
from hoodie_ds.services.cleaning import clean
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.failures import ServiceFailure, attempted
from hoodie_ds.services.planned_service import ROUNDS
from hoodie_ds.storage.connect import storage_to_write
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation, CompactionPlan
from hoodie_ds.timeline.instant import Instant

_REASON: Final = StructType([StructField("reason", StringType(), nullable=False)])


@dataclass(frozen=True, slots=True)
class ServicesResult:
    """What a run of the table services did.

    Parameters
    ----------
    compactions, cleans : tuple of str
        Instant times of the compactions that were completed, and of the cleans that deleted files.
    archived : tuple of str
        Times of the instants that were archived.
    failed : tuple of ServiceFailure
        What went wrong; the next run tries again.
    """

    compactions: tuple[str, ...] = ()
    cleans: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    failed: tuple[ServiceFailure, ...] = ()


def run_services(spark: SparkSession, opts: Mapping[str, str]) -> ServicesResult:
    """Run the table services that are due: compaction, then clean, then archiving.

    A compaction is a job on the executors, with a task for each file group. Streams do all this by
    themselves; if one leaves compaction to others
    (``hoodie.datasource.write.streaming.disable.compaction``), call this in a loop next to it, or
    from a scheduler. The next run resumes what a killed run has begun. Plans of other engines are
    executed too.

    Parameters
    ----------
    spark : SparkSession
        Where to run, also through Spark Connect.
    opts : mapping of str to str
        ``path`` of the table and the options of its writers, which say which services run and when
        each is due.

    Returns
    -------
    ServicesResult
        What was done, and what failed; the failure of a service does not stop the others.

    Raises
    ------
    OptionError
        An option is refused.
    TableNotFoundError
        There is no table.

    Examples
    --------
    >>> hoodie_ds.run_services(spark, opts).failed
    ()
    """
    call = given_options(opts)
    options = WriteOptions.parse({**write_settings(spark), **call})
    context = _context(options)
    table = context.open_table()
    following = [one for one in context.followers(table) if one.names_files]
    done: dict[Service, list[str]] = {service: [] for service in Service}
    work: dict[Service, Callable[[], object]] = {
        Service.COMPACTION: partial(_compact, spark, context, done[Service.COMPACTION]),
        **{one.service: partial(one.after, table) for one in following},
        Service.CLEAN: lambda: done[Service.CLEAN].extend(clean(context).times),
        Service.ARCHIVE: lambda: done[Service.ARCHIVE].extend(archive(context).times),
    }
    if table.properties.table_type is not TableType.MERGE_ON_READ:
        del work[Service.COMPACTION]
    root = table.storage.root
    wanted = options.services.of_jobs | {one.service for one in following}
    tried = [attempted(s, root, "", run) for s, run in work.items() if s in wanted]
    return ServicesResult(
        tuple(done[Service.COMPACTION]),
        tuple(done[Service.CLEAN]),
        tuple(done[Service.ARCHIVE]),
        tuple(filter(None, tried)),
    )


def _context(options: WriteOptions) -> ServiceContext:
    return ServiceContext(options, storage_to_write(options), SystemClock(), RandomIds())


def _compact(spark: SparkSession, context: ServiceContext, done: list[str]) -> None:
    """Execute the pending plans, and schedule one first if it is due."""
    compactor = Compactor(context)
    if not compactor.table.load_timeline().pending_compactions:
        compactor.schedule(only_if_due=True)
    for instant, plan in compactor.planned(compactor.table.load_timeline()):
        for _ in range(ROUNDS):
            _execute(spark, context.options, instant, plan)
            if compactor.complete(instant, plan):
                done.append(instant.time)
                break


def _execute(
    spark: SparkSession, options: WriteOptions, instant: Instant, plan: CompactionPlan
) -> None:
    """Run a task for each file group of a plan; `TimelineError` if one of them failed."""
    count = len(plan.operations)
    numbers = spark.range(0, count, 1, max(1, count))
    task = _task(options, instant, plan.operations)
    failed = numbers.mapInArrow(task, _REASON).collect()
    if failed:
        raise TimelineError(
            f"{options.base_path}: compaction {instant.time} is resumed by the next run: "
            f"{failed[0].reason}"
        )


def _task(
    options: WriteOptions, instant: Instant, operations: tuple[CompactionOperation, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compactor = Compactor(_context(options))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                plan = CompactionPlan((operations[number],))
                work = in_worker()(partial(compactor.execute, instant, plan))
                failure = attempted(Service.COMPACTION, options.base_path, instant.time, work)
                if failure is not None:
                    yield pa.RecordBatch.from_pydict({"reason": [failure.reason]})

    return run

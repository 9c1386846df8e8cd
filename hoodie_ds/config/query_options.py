"""What a query, or a stream out of a table, returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hoodie_ds.config.enums import HollowCommits, IncrementalFormat, QueryType
from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.option import (
    BOOLEAN,
    POSITIVE_INT,
    TEXT,
    Kind,
    Option,
    bytes_or_zero,
    choice,
)
from hoodie_ds.config.query_instant import (
    ALLOWED,
    EARLIEST,
    query_begin,
    query_instant,
    stream_start,
)
from hoodie_ds.config.table_options import TableOptions

if TYPE_CHECKING:
    from typing import Self

_QUERY_TYPES: Final = choice(QueryType)
_OLD_NAME: Final = "realtime"


@dataclass(frozen=True, kw_only=True)
class QueryOptions(OptionGroup):
    """What any read is asked for."""

    base_path: Option[str] = OperationOptions.base_path
    query_type: Option[QueryType] = Option(
        "hoodie.datasource.query.type",
        Kind(
            _QUERY_TYPES.allowed,
            lambda text: (
                QueryType.SNAPSHOT if text.lower() == _OLD_NAME else _QUERY_TYPES.parse(text)
            ),
        ),
        "What a read returns: the latest rows; those of base files, without later changes in log "
        "files; or the rows that a range of commits wrote.",
        QueryType.SNAPSHOT,
        aliases=("hoodie.datasource.view.type",),
    )
    as_of: Option[str | None] = Option(
        "as.of.instant",
        Kind(ALLOWED, query_instant),
        "Time travel: the table as it was when the commits that began up to this moment were "
        "complete.",
        # Spark's own names, which it hands on to a data source.
        aliases=("timestampAsOf", "versionAsOf"),
    )
    filter_pushdown: Option[bool] = Option(
        "hoodie.py.read.filter.pushdown",
        BOOLEAN,
        'Whether Spark hands the filters of a query to format("hoodie_py"), which leaves '
        "partitions, files, row groups and rows out by them. For a DataFrame of one query: Spark "
        "4.3 keeps the filters for later queries of the same DataFrame, which would miss rows.",
        False,
    )
    persist_max_bytes: Option[int] = Option(
        "hoodie.py.read.persist.max.size",
        bytes_or_zero("to persist none"),
        "Bytes of log files whose rows hoodie_ds.read persists in Spark, in memory or on disk, "
        "once a session reads them again; 0 persists none. Not with Spark Connect.",
        256 << 20,
    )
    merge_hook: Option[str | Callable[..., object] | None] = TableOptions.merge_hook
    metadata_enable: Option[bool | None] = FileOptions.metadata_enable


@dataclass(frozen=True, kw_only=True)
class IncrementalOptions(OptionGroup):
    """What an incremental query is asked for."""

    format: Option[IncrementalFormat] = Option(
        "hoodie.datasource.query.incremental.format",
        choice(IncrementalFormat),
        "What an incremental query returns: rows as they are at the end of the range, or each "
        "change to a row with what it was before (columns op, ts_ms, before and after).",
        IncrementalFormat.LATEST_STATE,
    )
    begin: Option[str] = Option(
        "hoodie.datasource.read.begin.instanttime",
        Kind(f"{ALLOWED}, or 000 for the first commit on", query_begin),
        "Where an incremental query begins, exclusive. In table version 6, and in queries of "
        "changes (cdc), the times at which commits began count, as in ts_ms; otherwise those of "
        "completion.",
        needed="say where the incremental query begins",
    )
    end: Option[str | None] = Option(
        "hoodie.datasource.read.end.instanttime",
        Kind(ALLOWED, query_instant),
        "Where an incremental query ends, inclusive; the newest commit by default.",
    )
    full_scan: Option[bool | None] = Option(
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
        BOOLEAN,
        "Whether an incremental query over commits whose files were cleaned returns their rows "
        "that are still in the table, instead of failing; by default true from table version 8 "
        "on, and false before.",
    )
    path_glob: Option[str | None] = Option(
        "hoodie.datasource.read.incr.path.glob",
        TEXT,
        "Files that an incremental query reads, as a glob of what their paths end with, such as "
        "/city=oslo/*.",
    )
    end_schema: Option[bool] = Option(
        "hoodie.datasource.read.schema.use.end.instanttime",
        BOOLEAN,
        "Whether an incremental query has the columns of the table at the end of its range, "
        "rather than the current ones.",
        False,
    )
    hollow_commits: Option[HollowCommits] = Option(
        "hoodie.read.timeline.holes.resolution.policy",
        choice(HollowCommits),
        "What an incremental query of table version 6, or of changes, does at a pending commit "
        "that is older than completed ones: it fails, or ends before that commit.",
        HollowCommits.FAIL,
    )
    by_completion: bool = True
    """Whether the range counts commits of later versions than 6 by when they were completed. Not in
    Hudi's CDC queries."""


@dataclass(frozen=True, kw_only=True)
class StreamOptions(OptionGroup):
    """What a stream out of a table is asked for."""

    start: Option[str] = Option(
        "hoodie.datasource.streaming.startOffset",
        Kind(f"earliest, latest, or {ALLOWED}", stream_start),
        "Where a new query of readStream begins: with the first commit, after the newest one, or "
        "after a moment, as in an incremental query.",
        EARLIEST,
    )
    max_commits: Option[int | None] = Option(
        "read.commits.limit",
        POSITIVE_INT,
        "Most commits in a micro-batch of readStream; all that are there by default.",
    )
    max_files: Option[int | None] = Option(
        "maxFilesPerTrigger",
        POSITIVE_INT,
        "Most files that the commits of a micro-batch of readStream have written; one commit is "
        "always taken.",
    )
    format: IncrementalFormat = IncrementalFormat.LATEST_STATE
    """Rows, or changes of rows."""
    full_scan: bool = False
    """Whether a stream whose next commits have been cleaned continues with what is left of them."""

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        format = given.get_or_default(IncrementalOptions.format)
        full_scan = given.get_or_default(IncrementalOptions.full_scan) is True
        return super().of(given).with_values(format=format, full_scan=full_scan)

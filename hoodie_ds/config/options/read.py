"""The options that a read obeys; the option table is made from `READ_OPTIONS`."""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.enums import HollowCommits, IncrementalFormat, QueryType
from hoodie_ds.config.option import BOOLEAN, POSITIVE_INT, TEXT, Kind, Option, choice
from hoodie_ds.config.options.storage import RETRY_DEADLINE_MS, VERIFY_CHECKSUMS
from hoodie_ds.config.options.write import MERGE_HOOK, PATH
from hoodie_ds.config.query_instant import (
    ALLOWED,
    EARLIEST,
    query_begin,
    query_instant,
    stream_start,
)

_QUERY_TYPES: Final = choice(QueryType)
_OLD_NAME: Final = "realtime"

QUERY_TYPE: Final = Option(
    "hoodie.datasource.query.type",
    Kind(
        _QUERY_TYPES.allowed,
        lambda text: QueryType.SNAPSHOT if text.lower() == _OLD_NAME else _QUERY_TYPES.parse(text),
    ),
    "What a read returns: the latest rows; those in base files, without what log files have "
    "changed since; or rows that commits of a range wrote.",
    QueryType.SNAPSHOT,
    aliases=("hoodie.datasource.view.type",),
)

AS_OF: Final = Option(
    "as.of.instant",
    Kind(ALLOWED, query_instant),
    "Time travel: the table as it was once the commits that were begun up to this moment were "
    "complete.",
    # Spark's own names, which it hands on to a data source.
    aliases=("timestampAsOf", "versionAsOf"),
)

INCREMENTAL_FORMAT: Final = Option(
    "hoodie.datasource.query.incremental.format",
    choice(IncrementalFormat),
    "What an incremental query returns: rows as they are at the end of the range, or each change "
    "to a row with what it was before (columns op, ts_ms, before and after).",
    IncrementalFormat.LATEST_STATE,
)

BEGIN: Final = Option(
    "hoodie.datasource.read.begin.instanttime",
    Kind(f"{ALLOWED}, or 000 for the first commit on", query_begin),
    "Where an incremental query begins; what was committed at that moment is left out. Of table "
    "version 6, and where changes are asked for (cdc), the times at which commits were begun "
    "count, which ts_ms has; else those of completion.",
)

END: Final = Option(
    "hoodie.datasource.read.end.instanttime",
    Kind(ALLOWED, query_instant),
    "Where an incremental query ends, with what was committed at that moment; the newest commit "
    "by default.",
)

FULL_SCAN: Final = Option(
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
    BOOLEAN,
    "Whether an incremental query of commits whose files were cleaned returns those of their rows "
    "that are in the table still, and does not fail; true by default from table version 8 on, and "
    "false before.",
)

PATH_GLOB: Final = Option(
    "hoodie.datasource.read.incr.path.glob",
    TEXT,
    "Files that an incremental query reads, as a glob of what their paths end with, such as "
    "/city=oslo/*.",
)

END_SCHEMA: Final = Option(
    "hoodie.datasource.read.schema.use.end.instanttime",
    BOOLEAN,
    "Whether an incremental query has the columns of the table at the end of its range, and not "
    "those of now.",
    False,
)

HOLLOW_COMMITS: Final = Option(
    "hoodie.read.timeline.holes.resolution.policy",
    choice(HollowCommits),
    "What becomes of an incremental query of a table of version 6, or of changes, where a commit "
    "was begun before others that are complete and is not complete itself: it fails, or ends "
    "before that commit.",
    HollowCommits.FAIL,
)

START_OFFSET: Final = Option(
    "hoodie.datasource.streaming.startOffset",
    Kind(f"earliest, latest, or {ALLOWED}", stream_start),
    "Where a new query of readStream begins: with the first commit, after the newest one, or after "
    "what was committed at a moment, which counts as in an incremental query.",
    EARLIEST,
)

MAX_COMMITS: Final = Option(
    "read.commits.limit",
    POSITIVE_INT,
    "Commits that a micro-batch of readStream takes at most; all that are there by default.",
)

MAX_FILES: Final = Option(
    "maxFilesPerTrigger",
    POSITIVE_INT,
    "Files that the commits of a micro-batch of readStream have written at most; one commit is "
    "taken in any case.",
)

FILTER_PUSHDOWN: Final = Option(
    "hoodie.py.read.filter.pushdown",
    BOOLEAN,
    'Whether Spark hands the filters of a query to format("hoodie_py"), which leaves partitions, '
    "files, row groups and rows out by them. For a DataFrame of one query: Spark 4.3 keeps the "
    "filters for later queries of the same DataFrame, which would miss rows.",
    False,
)

READ_OPTIONS: Final[tuple[Option[object], ...]] = (
    PATH,
    QUERY_TYPE,
    AS_OF,
    INCREMENTAL_FORMAT,
    BEGIN,
    END,
    FULL_SCAN,
    PATH_GLOB,
    END_SCHEMA,
    HOLLOW_COMMITS,
    START_OFFSET,
    MAX_COMMITS,
    MAX_FILES,
    FILTER_PUSHDOWN,
    MERGE_HOOK,
    VERIFY_CHECKSUMS,
    RETRY_DEADLINE_MS,
)
"""Every option that a read obeys, in the order of the option table."""

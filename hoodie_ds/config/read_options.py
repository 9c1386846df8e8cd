"""What a read was asked for, parsed once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hoodie_ds.config.enums import HollowCommits, IncrementalFormat, QueryType
from hoodie_ds.config.given_options import GivenOptions, storage_options
from hoodie_ds.config.options.read import (
    AS_OF,
    BEGIN,
    END,
    END_SCHEMA,
    FILTER_PUSHDOWN,
    FULL_SCAN,
    HOLLOW_COMMITS,
    INCREMENTAL_FORMAT,
    MAX_COMMITS,
    MAX_FILES,
    PATH_GLOB,
    QUERY_TYPE,
    START_OFFSET,
)
from hoodie_ds.config.options.restricted import BOTH_RESTRICTED, READ_RESTRICTED
from hoodie_ds.config.options.storage import RETRY_DEADLINE_MS, VERIFY_CHECKSUMS
from hoodie_ds.config.options.write import MERGE_HOOK, PATH
from hoodie_ds.config.query_instant import EARLIEST, FIRST
from hoodie_ds.errors import OptionError

_log = logging.getLogger("hoodie_ds")


@dataclass(frozen=True, slots=True)
class IncrementalOptions:
    """What an incremental query is asked for.

    Parameters
    ----------
    begin : str
        Where it begins; exclusive.
    end : str, optional
        Where it ends, inclusive; with the newest commit if None.
    format : IncrementalFormat
        Rows, or changes of rows.
    full_scan : bool, optional
        Whether rows of which files are gone are looked for in the whole table; where None, the
        table's version says.
    path_glob : str, optional
        How the paths of the files end that it reads.
    end_schema : bool
        Whether the columns are those at the end of the range.
    hollow_commits : HollowCommits
        What to do about an incomplete commit in a range of requested times.
    by_completion : bool
        Whether the range counts commits of later versions than 6 by when they were completed. Not
        in Hudi's CDC queries.
    """

    begin: str
    end: str | None = None
    format: IncrementalFormat = IncrementalFormat.LATEST_STATE
    full_scan: bool | None = None
    path_glob: str | None = None
    end_schema: bool = False
    hollow_commits: HollowCommits = HollowCommits.FAIL
    by_completion: bool = True


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream out of a table is asked for.

    Parameters
    ----------
    start : str
        ``earliest``, ``latest`` or the moment after which it begins.
    format : IncrementalFormat
        Rows, or changes of rows.
    max_commits, max_files : int, optional
        Commits, and files that they wrote, which a batch takes at most.
    full_scan : bool
        Whether a stream whose next commits have been cleaned goes on with what is left of them.
    """

    start: str = EARLIEST
    format: IncrementalFormat = IncrementalFormat.LATEST_STATE
    max_commits: int | None = None
    max_files: int | None = None
    full_scan: bool = False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read.

    Parameters
    ----------
    base_path : str
        The table's folder; never holds credentials.
    query_type : QueryType
        What to return.
    storage_options : mapping of str to str
        For the file system. Values are secrets and do not appear in the representation.
    merge_hook : str or callable, optional
        What merges base and log files of a table with merge mode CUSTOM, or its import path.
    verify_checksums : bool
        Whether data files are compared with the checksums of the commits that wrote them.
    storage_retry_ms : int
        How long an operation of a remote storage is tried again.
    as_of : str, optional
        Instant time up to which commits count, of a snapshot or read-optimized query.
    incremental : IncrementalOptions, optional
        What an incremental query returns.
    stream : StreamOptions
        What a stream returns.
    filter_pushdown : bool
        Whether a reader of Spark takes the filters of a query.
    """

    base_path: str
    query_type: QueryType = QueryType.SNAPSHOT
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    merge_hook: str | Callable[..., object] | None = None
    verify_checksums: bool = True
    storage_retry_ms: int = 60_000
    as_of: str | None = None
    incremental: IncrementalOptions | None = None
    stream: StreamOptions = field(default_factory=StreamOptions)
    filter_pushdown: bool = False

    @classmethod
    def parse(cls, raw: Mapping[str, object], is_stream: bool | None = False) -> ReadOptions:
        """Return the options that raw keys and texts mean.

        Parameters
        ----------
        raw : mapping of str to str
            As Spark or the user gave them; keys in any letter case. Options for writes pass.
        is_stream : bool or None
            Whether a stream is to be read, and not a table. None where nobody knows yet: then
            changes without a beginning, or an incremental query without one, are a stream's.

        Returns
        -------
        ReadOptions

        Raises
        ------
        OptionError
            A key is unknown, given twice or missing, or a value is malformed or asks for something
            that is not supported yet; one error tells all that is wrong.
        """
        given = GivenOptions.collect(raw)
        given.refuse_restricted(READ_RESTRICTED)
        given.refuse_restricted(BOTH_RESTRICTED)
        base_path = given.get(PATH)
        if not given.written(PATH):
            given.refuse(OptionError(PATH.key, None, "give the table's folder"))
        options = cls(
            base_path or "",
            given.get_or_default(QUERY_TYPE),
            storage_options(given),
            given.get(MERGE_HOOK),
            given.get_or_default(VERIFY_CHECKSUMS),
            given.get_or_default(RETRY_DEADLINE_MS),
            given.get(AS_OF),
            None if is_stream else _incremental(given, is_stream is None),
            _stream(given, is_stream),
            given.get_or_default(FILTER_PUSHDOWN),
        )
        given.check()
        given.warn()
        return options


def _stream(given: GivenOptions, is_stream: bool | None) -> StreamOptions:
    """What is said of a stream, to which no other query's options may be said."""
    for option in (BEGIN, END, AS_OF) if is_stream else ():
        for key, text in given.written(option):
            remedy = f"a stream has no end, and begins where {START_OFFSET.key} says; leave it out"
            given.refuse(OptionError(key, text, remedy))
    if is_stream and given.get_or_default(QUERY_TYPE) is QueryType.READ_OPTIMIZED:
        remedy = "a stream returns what commits wrote; leave it out"
        given.refuse(OptionError(QUERY_TYPE.key, QueryType.READ_OPTIMIZED.value, remedy))
    return StreamOptions(
        given.get_or_default(START_OFFSET),
        given.get_or_default(INCREMENTAL_FORMAT),
        given.get(MAX_COMMITS),
        given.get(MAX_FILES),
        bool(given.get(FULL_SCAN)),
    )


def _incremental(given: GivenOptions, may_be_stream: bool) -> IncrementalOptions | None:
    """What is said of an incremental query, which must be said of no other one."""
    if given.get_or_default(QUERY_TYPE) is not QueryType.INCREMENTAL:
        for option in (BEGIN, END, *(() if may_be_stream else (INCREMENTAL_FORMAT,))):
            if given.get(option) not in (None, option.default):
                key, text = given.written(option)[0]
                remedy = f"set {QUERY_TYPE.key}={QueryType.INCREMENTAL.value}, or leave it out"
                given.refuse(OptionError(key, text, f"belongs to an incremental query; {remedy}"))
        return None
    for key, text in given.written(AS_OF):
        remedy = f"leave it out; {END.key} says where an incremental query ends"
        given.refuse(OptionError(key, text, remedy))
    begin = given.get(BEGIN)
    if not given.written(BEGIN):
        if may_be_stream:
            return None
        given.refuse(OptionError(BEGIN.key, None, "say where the incremental query begins"))
    if begin == EARLIEST:
        _log.warning(
            "%s=%s is after every instant, as Hudi compares texts, so that no rows are returned; "
            "%s begins with the first commit", BEGIN.key, EARLIEST, FIRST,
        )  # fmt: skip
    kind = given.get_or_default(INCREMENTAL_FORMAT)
    return IncrementalOptions(
        begin or "",
        given.get(END),
        kind,
        given.get(FULL_SCAN),
        given.get(PATH_GLOB),
        given.get_or_default(END_SCHEMA),
        given.get_or_default(HOLLOW_COMMITS),
        by_completion=kind is not IncrementalFormat.CDC,
    )

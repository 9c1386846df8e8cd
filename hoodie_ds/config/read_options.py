"""What a read was asked for, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hoodie_ds.config.enums import IncrementalFormat, QueryType
from hoodie_ds.config.file_options import StorageOptions
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.known_options import collect, warn_of_ignored
from hoodie_ds.config.query_instant import EARLIEST, FIRST
from hoodie_ds.config.query_options import IncrementalOptions, QueryOptions, StreamOptions
from hoodie_ds.config.restricted_options import BOTH_RESTRICTED, READ_RESTRICTED
from hoodie_ds.errors import OptionError
from hoodie_ds.log import Log


@dataclass(frozen=True, kw_only=True)
class ReadOptions(QueryOptions, StorageOptions):
    """The options of a read."""

    incremental: IncrementalOptions | None = None
    """What an incremental query returns."""
    stream: StreamOptions = field(default_factory=StreamOptions)
    """What a stream returns."""

    @classmethod
    def parse(cls, raw: Mapping[str, object], is_stream: bool | None = False) -> ReadOptions:
        """Return the options that raw keys and strings mean; keys in any letter case.

        `is_stream` says whether a stream is to be read, and not a table. Where it is None, changes
        or an incremental query without a beginning are a stream's. Options for writes pass. One
        `OptionError` reports all that is wrong.
        """
        given = collect(raw)
        given.refuse_restricted(READ_RESTRICTED)
        given.refuse_restricted(BOTH_RESTRICTED)
        options = cls.of(given)
        if is_stream:
            _check_stream(options, given)
        else:
            incremental = _incremental(options, given, may_be_stream=is_stream is None)
            options = options.with_values(incremental=incremental)
        given.check()
        warn_of_ignored(given)
        return options


def _check_stream(options: ReadOptions, given: GivenOptions) -> None:
    """Note options of queries that were given for a stream."""
    for option in (IncrementalOptions.begin, IncrementalOptions.end, QueryOptions.as_of):
        remedy = f"a stream has no end, and begins where {StreamOptions.start.key} says"
        given.refuse_in_call(option, f"{remedy}; leave it out")
    if options.query_type is QueryType.READ_OPTIMIZED:
        remedy = "a stream returns what commits wrote; leave it out"
        given.refuse(OptionError(QueryOptions.query_type.key, options.query_type.value, remedy))


def _incremental(
    options: ReadOptions, given: GivenOptions, *, may_be_stream: bool
) -> IncrementalOptions | None:
    """Return the options of an incremental query, and note where another query has them."""
    begin, end, format = IncrementalOptions.begin, IncrementalOptions.end, IncrementalOptions.format
    if options.query_type is not QueryType.INCREMENTAL:
        for option in (begin, end, *(() if may_be_stream else (format,))):
            if given.get(option) not in (None, option.default):
                asked = f"{QueryOptions.query_type.key}={QueryType.INCREMENTAL.value}"
                remedy = f"belongs to an incremental query; set {asked}, or leave it out"
                given.refuse_in_call(option, remedy)
        return None
    remedy = f"leave it out; {end.key} says where an incremental query ends"
    given.refuse_in_call(QueryOptions.as_of, remedy)
    if may_be_stream and not given.written(begin):
        return None
    asked_for = IncrementalOptions.of(given)
    if asked_for.begin == EARLIEST:
        Log().warning(
            "%s=%s is after every instant, as Hudi compares strings, so that no rows are returned; "
            "%s begins with the first commit", begin.key, EARLIEST, FIRST,
        )  # fmt: skip
    return replace(asked_for, by_completion=asked_for.format is not IncrementalFormat.CDC)

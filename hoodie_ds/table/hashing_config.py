"""The stored buckets of a bucket index whose number was changed, or differs by partition (RFC-89).

One file per change, under the instant that made it; the newest that is committed counts. The first
is written at creation from ``hoodie.properties``, which has the rules from the table's first
moment: the next write completes a creation that was interrupted before this file. A rescaling puts
its file before its commit, so that rows and buckets change in one step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.bucket_rules import RULE_TYPE
from hoodie_ds.config.properties.keys import NUM_BUCKETS, PARTITION_BUCKETS
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, UnsupportedTableError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table, update_properties
from hoodie_ds.timeline.instant_status import InstantStatus, counts, status_of
from hoodie_ds.timeline.paths import HASHING_CONFIGS
from hoodie_ds.timeline.timeline import Timeline

_SUFFIX: Final = ".hashing_config"
_FIRST: Final = "00000000000000"  # Hudi's name for what no instant made
_VERSION: Final = 1
_ANY_PATH: Final = ".*"


@dataclass(frozen=True, slots=True)
class HashingConfig:
    """Rules as a table stores them, and the buckets of partitions that no rule matches.

    `expressions` is ``regex,number;regex,number``, empty if all partitions have as many buckets.
    """

    expressions: str
    default_buckets: int

    def to_bytes(self, time: str) -> bytes:
        """Return the content of the file of an instant time.

        Hudi ignores rules without an expression, so there is always one, which matches any path.
        """
        entries = {
            "expressions": self.expressions or f"{_ANY_PATH},{self.default_buckets}",
            "defaultBucketNumber": self.default_buckets,
            "rule": RULE_TYPE,
            "version": _VERSION,
            "instant": time,
        }
        return json.dumps(entries, indent=2, ensure_ascii=False).encode()


def load_hashing_config(storage: Storage, timeline: Timeline) -> HashingConfig | None:
    """Read the rules that count; None for a table that stores none.

    Raises `UnsupportedTableError` if the rules have an unknown type or version.
    """
    committed = [time for time in _times(storage) if _counts(storage, timeline, time)]
    if not committed:
        return None
    path = _path(max(committed))
    return _parse(storage.read(path), path)


def put_hashing_config(table: Table) -> None:
    """Store the rules that a table's properties name, unless they are stored."""
    properties = table.properties
    if properties.bucket_rules is None:
        return
    assert properties.num_buckets is not None, properties.name
    _put(table.storage, _FIRST, HashingConfig(properties.bucket_rules, properties.num_buckets))


def put_rescaled(storage: Storage, time: str, before: HashingConfig, after: HashingConfig) -> None:
    """Store the buckets that a table has once a pending instant is complete.

    The file of `before` counts until then, and again if the instant is rolled back.
    """
    if not _times(storage):
        _put(storage, _FIRST, before)
    _put(storage, time, after)


def drop_rescaled(storage: Storage, time: str) -> None:
    """Delete what an instant that does not count has stored, before it leaves the timeline.

    As Hudi's rollback does (``PartitionBucketIndexHashingConfig``): Hudi's readers use what no
    pending instant has stored.
    """
    storage.delete(_path(time))


def complete_hashing_config(table: Table, timeline: Timeline, now_ms: int) -> tuple[Table, bool]:
    """Finish what a process that stored rules and died has left.

    Rules of an instant that was rolled back, put late by a stopped process, are deleted. The number
    of buckets is set in the properties, where other engines read it. Returns the changed table, and
    whether rules were deleted that others may have used. `now_ms` is for the properties' comment.
    """
    storage, properties = table.storage, table.properties
    times = _times(storage)
    if not times:
        if properties.bucket_rules is not None:
            # A killed process may have left an unfinished file there, which Hudi cannot read.
            storage.delete(HASHING_CONFIGS)
            put_hashing_config(table)
        return table, False
    dropped = _drop_undone(table, timeline, times)
    stored = load_hashing_config(storage, timeline)
    if stored is None or properties.num_buckets in (None, stored.default_buckets):
        return table, dropped
    return _with_buckets(table, stored, now_ms), dropped


def agreed_buckets(table: Table, given: int | None) -> TableProperties:
    """Return the properties with the number of buckets that counts, if they may be out of date.

    `given` is the number of the option.
    """
    properties = table.properties
    if given in (None, properties.num_buckets):
        return properties
    stored = load_hashing_config(table.storage, table.load_timeline())
    if stored is None or properties.num_buckets is None:
        return properties
    return properties.with_changes({NUM_BUCKETS: str(stored.default_buckets)})


def _drop_undone(table: Table, timeline: Timeline, times: Iterable[str]) -> bool:
    """Delete rules of instants that do not count, and never will."""
    known = {time for time in times if time == _FIRST or timeline.commit_at(time)}
    doubted = sorted(set(times) - known)
    if not doubted:
        return False
    storage, timeline = table.storage, table.load_timeline()  # one may have been opened since
    gone = [time for time in doubted if status_of(storage, timeline, time) is InstantStatus.UNKNOWN]
    for time in gone:
        drop_rescaled(storage, time)
    return bool(gone)


def _with_buckets(table: Table, stored: HashingConfig, now_ms: int) -> Table:
    changes = {NUM_BUCKETS: str(stored.default_buckets)}
    gone = [PARTITION_BUCKETS] if PARTITION_BUCKETS in table.properties.raw else []
    if stored.expressions:
        changes[PARTITION_BUCKETS], gone = stored.expressions, []
    return update_properties(table, changes, gone, now_ms)


def _times(storage: Storage) -> list[str]:
    """Instant times under which rules are stored."""
    names = (status.path.rpartition("/")[2] for status in storage.list(HASHING_CONFIGS))
    return [name[: -len(_SUFFIX)] for name in names if name.endswith(_SUFFIX)]


def _counts(storage: Storage, timeline: Timeline, time: str) -> bool:
    return time == _FIRST or counts(storage, timeline, time)


def _put(storage: Storage, time: str, config: HashingConfig) -> None:
    with suppress(AlreadyExistsError):
        storage.put_if_absent(_path(time), config.to_bytes(time))


def _path(time: str) -> str:
    return f"{HASHING_CONFIGS}/{time}{_SUFFIX}"


def _parse(data: bytes, path: str) -> HashingConfig:
    try:
        entries = json.loads(data)
        expressions, buckets = entries["expressions"], entries["defaultBucketNumber"]
        rule, version = entries["rule"], entries["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFileError(f"{path}: no hashing config: {error!r}"[:500]) from error
    if not isinstance(expressions, str) or not isinstance(buckets, int) or buckets < 1:
        raise CorruptFileError(f"{path}: expressions or defaultBucketNumber is malformed")
    if version != _VERSION or str(rule).lower() != RULE_TYPE:
        raise UnsupportedTableError(
            f"{path} has rules of type {rule!r} in version {version!r}; this release knows "
            f"{RULE_TYPE!r} in version {_VERSION}"
        )
    if expressions == f"{_ANY_PATH},{buckets}":
        expressions = ""
    return HashingConfig(expressions, buckets)

"""The stored rules of a bucket index whose number of buckets differs by partition (RFC-89).

One file per change, under the instant that made it; the newest that is committed counts. The
first is written at creation from ``hoodie.properties``, which is where the rules appear with the
table: a creation that was interrupted before this file is completed by the next write.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.bucket_rules import RULE_TYPE
from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, UnsupportedTableError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import REPLACING
from hoodie_ds.timeline.paths import HASHING_CONFIGS
from hoodie_ds.timeline.timeline import Timeline

_SUFFIX: Final = ".hashing_config"
_FIRST: Final = "00000000000000"  # Hudi's name for what no instant made
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class HashingConfig:
    """Rules as a table stores them.

    Parameters
    ----------
    expressions : str
        ``regex,number;regex,number``.
    default_buckets : int
        Buckets of a partition that no rule matches.
    """

    expressions: str
    default_buckets: int


def load_hashing_config(storage: Storage, timeline: Timeline) -> HashingConfig | None:
    """Read the rules that count; None for a table that stores none.

    Raises
    ------
    CorruptFileError
        The file is damaged.
    UnsupportedTableError
        The rules are of a type, or in a version, that is not known here.
    """
    pending = {i.time for i in timeline.pending if i.action in REPLACING}
    names = (status.path.rpartition("/")[2] for status in storage.list(HASHING_CONFIGS))
    times = [name[: -len(_SUFFIX)] for name in names if name.endswith(_SUFFIX)]
    committed = [time for time in times if time not in pending]
    if not committed:
        return None
    path = _path(max(committed))
    return _parse(storage.read(path), path)


def put_hashing_config(table: Table) -> None:
    """Store the rules that a table's properties name, unless they are stored."""
    properties = table.properties
    if properties.bucket_rules is None:
        return
    entries = {
        "expressions": properties.bucket_rules,
        "defaultBucketNumber": properties.num_buckets,
        "rule": RULE_TYPE,
        "version": _VERSION,
        "instant": _FIRST,
    }
    text = json.dumps(entries, indent=2, ensure_ascii=False)
    with suppress(AlreadyExistsError):
        table.storage.put_if_absent(_path(_FIRST), text.encode())


def complete_hashing_config(table: Table) -> None:
    """Finish a creation that ended before the rules were stored."""
    if table.properties.bucket_rules is None or table.storage.list(HASHING_CONFIGS):
        return
    # A killed process may have left an unfinished file there, over which Hudi would stumble.
    table.storage.delete(HASHING_CONFIGS)
    put_hashing_config(table)


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
    return HashingConfig(expressions, buckets)

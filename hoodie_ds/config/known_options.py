"""Every option key this library knows, and the keys of one call held against them.

Invariant: an unknown ``hoodie.*`` key, or one that is given twice, is among the problems of the
`GivenOptions`, and all problems are reported at once. Keys are matched without regard to letter
case, because Spark hands them over in lower case. Settings of the Spark session,
``spark.hoodie.*``, yield to options of the call, and an unknown one, which may be for another
engine, is warned about. Of the keys without the prefix a likely typo of one that is obeyed is
refused too; others may be Spark's own and pass unread, unless `check_keys` is asked.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeVar

from hoodie_ds.config.archiving_options import ArchivingOptions
from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.clustering_options import ClusteringOptions
from hoodie_ds.config.compaction_options import CompactionOptions
from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.file_options import STORAGE_OPTION_PREFIX, FileOptions, StorageOptions
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.ignored_options import (
    IGNORED,
    IGNORED_PREFIXES,
    reason_to_warn,
)
from hoodie_ds.config.index_options import IndexOptions
from hoodie_ds.config.metadata_options import MetadataOptions
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.option import Option, is_of_session, without_spark
from hoodie_ds.config.query_options import IncrementalOptions, QueryOptions, StreamOptions
from hoodie_ds.config.restricted_options import (
    BOTH_RESTRICTED,
    READ_RESTRICTED,
    REFUSED_PREFIXES,
    RETIRED,
    WRITE_RESTRICTED,
)
from hoodie_ds.config.secret_values import shown
from hoodie_ds.config.service_switches import ServiceSwitches
from hoodie_ds.config.table_options import (
    KEYGEN_PREFIX,
    KEYGEN_SUFFIXES,
    OLD_KEYGEN_PREFIX,
    ChangeOptions,
    TableOptions,
)
from hoodie_ds.errors import OptionError
from hoodie_ds.log import Log

T = TypeVar("T")


def _declared(*groups: type[OptionGroup]) -> tuple[Option[Any], ...]:
    return tuple(o for group in groups for o in vars(group).values() if isinstance(o, Option))


WRITE_OPTIONS: Final = _declared(
    OperationOptions,
    TableOptions,
    ChangeOptions,
    IndexOptions,
    FileOptions,
    StorageOptions,
    ServiceSwitches,
    Concurrency,
    ClusteringOptions,
    CleaningOptions,
    CompactionOptions,
    ArchivingOptions,
    MetadataOptions,
    CatalogOptions,
)
"""Every option that a write obeys, in the order of the option table."""

READ_OPTIONS: Final = _declared(QueryOptions, IncrementalOptions, StreamOptions, StorageOptions)
"""Every option that a read obeys, in the order of the option table."""

_ALIKE: Final = 0.6
"""Of two words, the share of letters in common from which one may be a typo of the other."""
_IMPLEMENTED: Final = tuple(
    name for option in (*WRITE_OPTIONS, *READ_OPTIONS) for name in option.names
)
_KEYGEN_KEYS: Final = tuple(
    prefix + suffix for prefix in (KEYGEN_PREFIX, OLD_KEYGEN_PREFIX) for suffix in KEYGEN_SUFFIXES
)
_OBEYED: Final = {
    key.lower(): key
    for keys in (_IMPLEMENTED, _KEYGEN_KEYS, WRITE_RESTRICTED, READ_RESTRICTED, BOTH_RESTRICTED)
    for key in keys
}
_KNOWN: Final = {**_OBEYED, **{key.lower(): key for key in IGNORED}}
_ONE_NAME: Final = {
    name.lower(): option.key.lower()
    for option in (*WRITE_OPTIONS, *READ_OPTIONS)
    for name in option.names
}
_SHORT: Final = {
    key: name for key, name in _OBEYED.items() if "." in key and not key.startswith("hoodie.")
}
"""Flink's short names that are obeyed; not `path`, which Spark's own names come near."""
_SQL_NAMES: Final = {
    "primarykey": TableOptions.record_key_fields.key,
    "precombinefield": TableOptions.ordering_fields.key,
}
_SQL_TABLE_TYPES: Final = ("cow", "mor")
_OF_OTHERS: Final = ("spark.", "parquet.", "orc.", "avro.", "fs.", "mapreduce.")
"""Prefixes of Spark's and Hadoop's own keys, which may come near one of ours."""
_UNKNOWN: Final = "unknown option"
_LOOK_UP: Final = f"{_UNKNOWN}; leave it out, or look for its name in conf/README.md"


def collect(raw: Mapping[str, object]) -> GivenOptions:
    """Return the options that are set; a key that is unknown or given twice is a problem.

    Numbers and booleans count as strings; ``None`` counts as not given.
    """
    entries: dict[str, tuple[str, str]] = {}
    given = GivenOptions(entries)
    unknown = []
    for key, value in _that_count(raw).items():
        if value is None:
            continue
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if not isinstance(value, (str, int, float)):
            given.refuse(OptionError(key, type(value).__name__, "give the value as a string"))
            continue
        name = without_spark(key)
        lower = name.lower()
        remedy = _remedy_of_key(lower, str(value))
        if remedy is not None and is_of_session(key) and remedy.startswith(_UNKNOWN):
            unknown.append((key[:200], remedy.removeprefix(f"{_UNKNOWN}; ")))
            continue
        if remedy is not None:
            given.refuse(OptionError(key[:200], shown(name, value), remedy))
        if lower in entries and entries[lower][1] != str(value):
            twice = "given twice with different values"
            given.refuse(OptionError(key, shown(name, value), twice))
        entries[lower] = (key, str(value))
    if unknown:
        _warn_of_unknown(tuple(sorted(unknown)))
    return given


def _that_count(raw: Mapping[str, object]) -> Mapping[str, object]:
    """Return the options of a call, and the settings of the session that it does not give."""
    if not any(map(is_of_session, raw)):
        return raw
    call = {key: raw[key] for key in raw if raw[key] is not None and not is_of_session(key)}
    return overridden({key: raw[key] for key in raw if is_of_session(key)}, call)


def warn_of_ignored(given: GivenOptions) -> None:
    """Name, in one warning for each set of keys in a process, what has no effect here."""
    found = [
        (reason_to_warn(key, text), _KNOWN.get(key, key))
        for key, (_, text) in given.entries.items()
        if key not in _OBEYED
    ]
    reasons = sorted((reason, key) for reason, key in found if reason)
    if reasons:
        _warn_once(tuple(reasons))


def check_keys(raw: Mapping[str, object]) -> None:
    """Raise one `OptionError` for all keys that are not known, also those without the prefix.

    For options that only this library reads, so that no key can be Spark's own.
    """
    unknown = [
        OptionError(key[:200], shown(key, value), remedy)
        for key, value in raw.items()
        if value is not None and (remedy := _remedy_of_own_key(key.lower(), str(value))) is not None
    ]
    if unknown:
        raise OptionError.of(unknown)


def overridden(own: Mapping[str, T], call: Mapping[str, T]) -> dict[str, T]:
    """Return the options of a table with those of a call, which win under whichever name."""
    given = set(map(_one_name, call))
    return {**{key: own[key] for key in own if _one_name(key) not in given}, **call}


def _one_name(key: str) -> str:
    """Return the same string for all names of one option, in any letter case."""
    lower = without_spark(key).lower()
    if lower.startswith(OLD_KEYGEN_PREFIX):
        return KEYGEN_PREFIX + lower.removeprefix(OLD_KEYGEN_PREFIX)
    return _ONE_NAME.get(lower, lower)


def _remedy_of_own_key(lower: str, text: str) -> str | None:
    """Return the remedy for a key that only this library reads; None for one that is known."""
    remedy = _remedy_of_key(lower, text)
    known = lower.startswith(("hoodie.", *IGNORED_PREFIXES)) or lower in _KNOWN
    if remedy is not None or known:
        return remedy
    return _unknown(_meant(lower, _KNOWN, 0.7))


def _remedy_of_key(lower: str, text: str) -> str | None:
    """Return what to do about a key that is not known, None for one that is or may be Spark's."""
    if f"{lower.rstrip('.')}." == STORAGE_OPTION_PREFIX:
        return f"a name is missing behind it, such as {STORAGE_OPTION_PREFIX}endpoint_url"
    if lower in _KNOWN or lower.startswith(STORAGE_OPTION_PREFIX):
        return None
    if not lower.startswith("hoodie."):
        return _remedy_of_short_key(lower, text)
    if lower in RETIRED:
        return f"its name is {RETIRED[lower]} now"
    for prefix, remedy in REFUSED_PREFIXES.items():
        if lower.startswith(prefix):
            return f"not supported yet; {remedy}"
    if lower.startswith(tuple(IGNORED_PREFIXES)):
        meant = _meant(lower, _OBEYED, 0.92)  # a typo of what is obeyed is not passed over
        return None if meant is None else _unknown(meant)
    return _unknown(_meant(lower, _KNOWN, 0.7))


def _remedy_of_short_key(lower: str, text: str) -> str | None:
    """Return what to do about a key without the prefix that can hardly be Spark's own."""
    if lower in _SQL_NAMES:
        return f"a name of Hudi's SQL; write {_SQL_NAMES[lower]}"
    if lower == "type" and text.strip().lower() in _SQL_TABLE_TYPES:
        return f"a name of Hudi's SQL; write {OperationOptions.table_type.key}"
    if "." not in lower or lower.startswith(_OF_OTHERS):
        return None
    meant = _OBEYED.get(f"hoodie.{lower.removeprefix('hudi.')}") or _meant(lower, _SHORT, 0.8)
    return None if meant is None else _unknown(meant)


def _unknown(meant: str | None) -> str:
    return _LOOK_UP if meant is None else f"{_UNKNOWN}; the nearest known is {meant}"


def _meant(lower: str, known: Mapping[str, str], cutoff: float) -> str | None:
    """Return the key that a mistyped one may mean: word by word alike, not by chance."""
    for near in difflib.get_close_matches(lower[:200], known, n=5, cutoff=cutoff):
        ours, theirs = (re.split(r"[._]", key) for key in (lower, near))
        pairs = list(zip(ours, theirs, strict=False))
        if "".join(ours) == "".join(theirs):
            return known[near]
        if len(ours) != len(theirs):
            if set(ours) <= set(theirs) or set(theirs) <= set(ours):
                return known[near]
        elif all(difflib.SequenceMatcher(None, *pair).ratio() > _ALIKE for pair in pairs):
            return known[near]
    return None


@lru_cache(maxsize=256)
def _warn_once(reasons: tuple[tuple[str, str], ...]) -> None:
    """Warn once for a set of keys in the life of a process."""
    groups = (
        f"{', '.join(key for _, key in group)} ({reason})"
        for reason, group in groupby(reasons, key=itemgetter(0))
    )
    Log().warning("options that have no effect here; rows are the same: %s", "; ".join(groups))


@lru_cache(maxsize=256)
def _warn_of_unknown(found: tuple[tuple[str, str], ...]) -> None:
    """Warn once for a set of settings of the session, which may be for another engine."""
    listed = "; ".join(f"{key} ({remedy})" for key, remedy in found)
    Log().warning("settings of the Spark session that are unknown here have no effect: %s", listed)

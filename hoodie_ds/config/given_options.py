"""Every option key this library knows, and the raw options of one call checked against it.

Invariant: an unknown ``hoodie.*`` key, or one that is given twice, is among the problems of a
`GivenOptions`, and all problems are told at once. Keys are matched
without regard to letter case, because Spark hands them over in lower case. Of the keys without the
prefix a likely typo of one that is obeyed is refused too; others may be Spark's own and pass
unread, unless `check_keys` is asked.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeVar

from hoodie_ds.config.option import Option
from hoodie_ds.config.options.ignored import (
    IGNORED,
    IGNORED_PREFIXES_LOWER,
    OBEYED_TOO,
    reason_to_warn,
)
from hoodie_ds.config.options.read import READ_OPTIONS
from hoodie_ds.config.options.restricted import (
    BOTH_RESTRICTED,
    INSTEAD,
    READ_RESTRICTED,
    REFUSED_PREFIXES,
    RETIRED,
    WRITE_RESTRICTED,
)
from hoodie_ds.config.options.write import (
    ORDERING_FIELDS,
    RECORD_KEY_FIELDS,
    TABLE_TYPE,
    WRITE_OPTIONS,
)
from hoodie_ds.config.secret_values import shown
from hoodie_ds.errors import OptionError

T = TypeVar("T")

STORAGE_OPTION_PREFIX: Final = "hoodie.py.storage.option."
"""Options with this prefix go to the file system; their values are secrets."""

KEYGEN_PREFIX: Final = "hoodie.keygen.timebased."
"""Options, and table properties, of the TIMESTAMP and CUSTOM key generators."""

OLD_KEYGEN_PREFIX: Final = "hoodie.deltastreamer.keygen.timebased."
"""The name of `KEYGEN_PREFIX` before Hudi 0.14."""

KEYGEN_SUFFIXES: Final = (
    "timestamp.type",
    "timestamp.scalar.time.unit",
    "input.dateformat",
    "input.dateformat.list.delimiter.regex",
    "input.timezone",
    "output.dateformat",
    "output.timezone",
    "timezone",
)
"""What may follow `KEYGEN_PREFIX`."""

_ALIKE: Final = 0.6
"""Of two words, the share of letters in common from which one may be a typo of the other."""
_IMPLEMENTED: Final = tuple(
    name for option in (*WRITE_OPTIONS, *READ_OPTIONS) for name in (option.key, *option.aliases)
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
    for name in (option.key, *option.aliases)
}
_SHORT: Final = {
    key: name for key, name in _OBEYED.items() if "." in key and not key.startswith("hoodie.")
}
"""Flink's short names that are obeyed; not `path`, which Spark's own names come near."""
_SQL_NAMES: Final = {
    "primarykey": RECORD_KEY_FIELDS.key,
    "precombinefield": ORDERING_FIELDS.key,
}
_SQL_TABLE_TYPES: Final = ("cow", "mor")
_OF_OTHERS: Final = ("spark.", "parquet.", "orc.", "avro.", "fs.", "mapreduce.")
"""Prefixes of Spark's and Hadoop's own keys, which may come near one of ours."""
_LOOK_UP: Final = "unknown option; leave it out, or look for its name in conf/README.md"
_log = logging.getLogger("hoodie_ds")


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The options of one call, keyed in lower case, and all that is wrong with them.

    Parameters
    ----------
    entries : mapping
        Key in lower case to the key as written and its text.
    problems : list of OptionError
        What was found wrong up to now; `check` raises it.
    """

    entries: Mapping[str, tuple[str, str]] = field(repr=False)
    problems: list[OptionError] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def collect(cls, raw: Mapping[str, object]) -> GivenOptions:
        """Return the options that are set; a key that is unknown or given twice is a problem.

        Numbers and booleans count as their text; ``None`` counts as not given.
        """
        entries: dict[str, tuple[str, str]] = {}
        given = cls(entries)
        for key, value in raw.items():
            if value is None:
                continue
            if isinstance(value, os.PathLike):
                value = os.fspath(value)
            if not isinstance(value, (str, int, float)):
                given.refuse(OptionError(key, type(value).__name__, "give the value as text"))
                continue
            lower = key.lower()
            remedy = _remedy_of_key(lower, str(value))
            if remedy is not None:
                given.refuse(OptionError(key[:200], shown(key, value), remedy))
            if lower in entries and entries[lower][1] != str(value):
                twice = "given twice with different values"
                given.refuse(OptionError(key, shown(key, value), twice))
            entries[lower] = (key, str(value))
        return given

    def refuse(self, problem: OptionError) -> None:
        """Note what is wrong; each thing once."""
        if all(problem.args != known.args for known in self.problems):
            self.problems.append(problem)

    def check(self) -> None:
        """Raise one `OptionError` for all that is wrong, if anything is."""
        if self.problems:
            raise OptionError.of(self.problems)

    def warn(self) -> None:
        """Name, in one warning for each set of keys in a process, what has no effect here."""
        found = [
            (reason_to_warn(key, text), _KNOWN.get(key, key))
            for key, (_, text) in self.entries.items()
            if key not in _OBEYED or key in OBEYED_TOO
        ]
        reasons = sorted((reason, key) for reason, key in found if reason)
        if reasons:
            _warn_once(tuple(reasons))

    def get(self, option: Option[T]) -> T | None:
        """Return an option's value, ``None`` if it is not given.

        A text that is not allowed, or two names of the option that do not agree, is a problem.
        """
        try:
            return self._value(option)
        except OptionError as problem:
            self.refuse(problem)
            return None

    def _value(self, option: Option[T]) -> T | None:
        found = [(key, text, option.parse(text, key)) for key, text in self.written(option)]
        for key, text, value in found[1:]:
            if value != found[0][2]:
                raise OptionError(
                    key, text, f"contradicts {found[0][0]}, which means the same; give one"
                )
        return found[0][2] if found else None

    def written(self, option: Option[object]) -> list[tuple[str, str]]:
        """Return (key as written, text) of an option, under its own name and its aliases."""
        names = (name.lower() for name in (option.key, *option.aliases))
        return [self.entries[name] for name in names if name in self.entries]

    def get_or_default(self, option: Option[T]) -> T:
        """Return the value of an option that has a default."""
        value = self.get(option)
        if value is not None:
            return value
        assert option.default is not None, option.key
        return option.default

    def text(self, key: str) -> str | None:
        """Return the text given under one key, ``None`` if not given."""
        entry = self.entries.get(key.lower())
        return None if entry is None else entry[1]

    def with_prefix(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield (what follows the prefix, as written; text) of the keys that have it."""
        for lower, (key, text) in self.entries.items():
            if lower.startswith(prefix.lower()):
                yield key[len(prefix) :], text

    def refuse_restricted(self, restricted: Mapping[str, tuple[str, ...]]) -> None:
        """Note each value that asks for what this release does not do yet."""
        for key, accepted in restricted.items():
            text = self.text(key)
            if text is None or text.strip().lower() in accepted:
                continue
            use = " or ".join(map(repr, accepted))
            remedy = INSTEAD.get(key) or (f"use {use}" if accepted else "leave it out")
            written = self.entries[key.lower()][0]
            self.refuse(OptionError(written, text, f"not supported yet; {remedy}"))


def storage_options(given: GivenOptions) -> dict[str, str]:
    """Return the options for the file system, without their prefix; values are secrets."""
    return dict(given.with_prefix(STORAGE_OPTION_PREFIX))


def check_keys(raw: Mapping[str, object]) -> None:
    """Raise one `OptionError` for all keys that are not known, also those without the prefix.

    Parameters
    ----------
    raw : mapping of str to object
        Options that only this library reads, so that no key can be Spark's own.
    """
    unknown = [
        OptionError(key[:200], shown(key, value), remedy)
        for key, value in raw.items()
        if value is not None and (remedy := _remedy_of_own_key(key.lower(), str(value))) is not None
    ]
    if unknown:
        raise OptionError.of(unknown)


def overridden(own: Mapping[str, str], call: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a table with those of a call, which win under whichever name.

    Parameters
    ----------
    own : mapping of str to str
        The table's.
    call : mapping of str to str
        The call's.
    """
    said = set(map(_one_name, call))
    return {**{key: own[key] for key in own if _one_name(key) not in said}, **call}


def _one_name(key: str) -> str:
    """Return the same text for all names of one option, in any letter case."""
    lower = key.lower()
    if lower.startswith(OLD_KEYGEN_PREFIX):
        return KEYGEN_PREFIX + lower.removeprefix(OLD_KEYGEN_PREFIX)
    return _ONE_NAME.get(lower, lower)


def _remedy_of_own_key(lower: str, text: str) -> str | None:
    """Return what to do about a key that nobody else reads, None for one that is known."""
    remedy = _remedy_of_key(lower, text)
    known = lower.startswith(("hoodie.", *IGNORED_PREFIXES_LOWER)) or lower in _KNOWN
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
    if lower.startswith(IGNORED_PREFIXES_LOWER):
        meant = _meant(lower, _OBEYED, 0.92)  # a typo of what is obeyed is not passed over
        return None if meant is None else _unknown(meant)
    return _unknown(_meant(lower, _KNOWN, 0.7))


def _remedy_of_short_key(lower: str, text: str) -> str | None:
    """Return what to do about a key without the prefix that can hardly be Spark's own."""
    if lower in _SQL_NAMES:
        return f"a name of Hudi's SQL; write {_SQL_NAMES[lower]}"
    if lower == "type" and text.strip().lower() in _SQL_TABLE_TYPES:
        return f"a name of Hudi's SQL; write {TABLE_TYPE.key}"
    if "." not in lower or lower.startswith(_OF_OTHERS):
        return None
    meant = _OBEYED.get(f"hoodie.{lower.removeprefix('hudi.')}") or _meant(lower, _SHORT, 0.8)
    return None if meant is None else _unknown(meant)


def _unknown(meant: str | None) -> str:
    return _LOOK_UP if meant is None else f"unknown option; the nearest known is {meant}"


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
    told = (
        f"{', '.join(key for _, key in group)} ({reason})"
        for reason, group in groupby(reasons, key=itemgetter(0))
    )
    _log.warning("options that have no effect here; rows are the same: %s", "; ".join(told))

"""Every option key this library knows, and the raw options of one call checked against it.

Invariant: a `GivenOptions` holds no unknown ``hoodie.*`` key and no key twice. Keys are matched
without regard to letter case, because Spark hands them over in lower case. Keys of others (Spark's
own, those without the prefix) pass unread.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from hoodie_ds.config.ignored import IGNORED, IGNORED_PREFIXES
from hoodie_ds.config.option import Option
from hoodie_ds.config.read_catalog import READ_OPTIONS
from hoodie_ds.config.restricted import BOTH_RESTRICTED, READ_RESTRICTED, WRITE_RESTRICTED
from hoodie_ds.config.write_catalog import WRITE_OPTIONS
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

_HIDDEN: Final = "***"
_IMPLEMENTED: Final = tuple(
    name for option in (*WRITE_OPTIONS, *READ_OPTIONS) for name in (option.key, *option.aliases)
)
_KEYGEN_KEYS: Final = tuple(
    prefix + suffix for prefix in (KEYGEN_PREFIX, OLD_KEYGEN_PREFIX) for suffix in KEYGEN_SUFFIXES
)
_KNOWN: Final = {
    key.lower(): key
    for keys in (
        _IMPLEMENTED,
        _KEYGEN_KEYS,
        IGNORED,
        WRITE_RESTRICTED,
        READ_RESTRICTED,
        BOTH_RESTRICTED,
    )
    for key in keys
}
_FAMILIES: Final = (STORAGE_OPTION_PREFIX, *IGNORED_PREFIXES)


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The options of one call, keyed in lower case.

    Parameters
    ----------
    entries : mapping
        Key in lower case to the key as written and its text.
    """

    entries: Mapping[str, tuple[str, str]] = field(repr=False)

    @classmethod
    def collect(cls, raw: Mapping[str, object]) -> GivenOptions:
        """Return the options that are set; `OptionError` for a key that is unknown or given twice.

        Numbers and booleans count as their text; ``None`` counts as not given.
        """
        entries: dict[str, tuple[str, str]] = {}
        for key, value in raw.items():
            if value is None:
                continue
            if not isinstance(value, (str, int, float)):
                raise OptionError(key, type(value).__name__, "give the value as text")
            lower = key.lower()
            _refuse_unknown(key, lower)
            if lower in entries and entries[lower][1] != str(value):
                raise OptionError(key, _HIDDEN, "given twice with different values")
            entries[lower] = (key, str(value))
        return cls(entries)

    def get(self, option: Option[T]) -> T | None:
        """Return an option's value, ``None`` if not given; `OptionError` if given in two ways."""
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
        """Raise `OptionError` for a value that asks for what this release does not do yet."""
        for key, accepted in restricted.items():
            text = self.text(key)
            if text is None or text.strip().lower() in accepted:
                continue
            remedy = f"use {' or '.join(map(repr, accepted))}" if accepted else "leave it out"
            raise OptionError(self.entries[key.lower()][0], text, f"not supported yet; {remedy}")


def storage_options(given: GivenOptions) -> dict[str, str]:
    """Return the options for the file system, without their prefix; values are secrets."""
    return dict(given.with_prefix(STORAGE_OPTION_PREFIX))


def _refuse_unknown(key: str, lower: str) -> None:
    if not lower.startswith("hoodie.") or lower in _KNOWN or lower.startswith(_FAMILIES):
        return
    # The value stays out of the message: under a mistyped key it may be a password.
    near = difflib.get_close_matches(lower[:200], _KNOWN, n=1, cutoff=0.0)
    raise OptionError(key[:200], _HIDDEN, f"unknown option; the nearest known is {_KNOWN[near[0]]}")

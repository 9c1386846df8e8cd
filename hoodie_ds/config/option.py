"""What an option is, and how its text becomes a value.

An `Option` names a key, its aliases and its `Kind`; a kind knows which texts are allowed and what
they mean. Nothing here guesses: a text that is not allowed is an `OptionError` that says what is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

from hoodie_ds.errors import OptionError

T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound=Enum)

_INT32_MAX: Final = 2**31 - 1
_BYTES_MAX: Final = 2**50
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE: Final = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?) *(?:([kmgt]?)(i?b)|([kmgt]))?", re.I)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """A type of option value.

    Parameters
    ----------
    allowed : str
        The allowed texts, in words for an error message.
    parse : callable
        From a text without surrounding blanks to its value; ``None`` for a text not allowed.
    """

    allowed: str
    parse: Callable[[str], T_co | None]


@dataclass(frozen=True, slots=True)
class Option(Generic[T_co]):
    """One option of this library.

    Parameters
    ----------
    key : str
        Its name, as Hudi spells it.
    kind : Kind
        What its value may be.
    doc : str
        One sentence for the option table.
    default : object
        The value when it is not given; ``None`` where the table or the engine decides.
    aliases : tuple of str
        Other names that mean the same: Flink's short names, older and newer Hudi names.
    flink_kind : Kind
        What the value may be under an alias without the prefix ``hoodie.``; `kind` if not given.
        Flink counts megabytes where Hudi on Spark counts bytes.
    since : str
        The release of this library that first had it.
    """

    key: str
    kind: Kind[T_co]
    doc: str
    default: T_co | None = None
    aliases: tuple[str, ...] = ()
    flink_kind: Kind[T_co] | None = None
    since: str = "0.1"

    def parse(self, text: str, key: str | None = None) -> T_co:
        """Return the value of a text given under `key` (the option's own name by default)."""
        written = key or self.key
        hudi = written.lower().startswith("hoodie.")
        kind = self.kind if hudi or self.flink_kind is None else self.flink_kind
        value = kind.parse(text.strip())
        if value is None:
            raise OptionError(written, text, f"allowed is {kind.allowed}")
        return value


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _positive_int(text: str) -> int | None:
    if not re.fullmatch(r"[0-9]{1,10}", text):
        return None
    return int(text) if 0 < int(text) <= _INT32_MAX else None


def _size(text: str, bare_shift: int) -> int | None:
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number, prefix, byte, letter = match.groups()
    shift = (
        bare_shift if byte is None and letter is None else _UNITS[(prefix or letter or "").lower()]
    )
    size = int(float(number) * 2**shift) if "." in number else int(number) << shift
    return size if 0 < size <= _BYTES_MAX else None


def _plain(text: str) -> str | None:
    return text if text and not _CONTROL.search(text) else None


def _names(text: str) -> tuple[str, ...] | None:
    if not text:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    usable = all(_plain(name) for name in names) and len(set(names)) == len(names)
    return names if usable else None


def _one_or_more_names(text: str) -> tuple[str, ...] | None:
    return _names(text) or None


def choice(members: type[E]) -> Kind[E]:
    """Return the kind whose values are an enum's members, in any letter case."""
    by_text = {str(member.value).lower(): member for member in members}
    listed = ", ".join(str(member.value) for member in members)
    return Kind(f"one of {listed}", lambda text: by_text.get(text.lower()))


BOOLEAN: Final = Kind("true or false", _boolean)
POSITIVE_INT: Final = Kind(f"a whole number from 1 to {_INT32_MAX}", _positive_int)
BYTES: Final = Kind(
    "a size in bytes, or with a unit such as 128MB, from 1 byte to 1024 TB",
    lambda text: _size(text, bare_shift=0),
)
MEGABYTES: Final = Kind(
    "a size in megabytes, or with a unit such as 128MB, from 1 byte to 1024 TB",
    lambda text: _size(text, bare_shift=20),
)
TEXT: Final = Kind("a non-empty text without control characters", _plain)
NAMES: Final = Kind("a comma-separated list of different field names, or nothing", _names)
ONE_OR_MORE_NAMES: Final = Kind(
    "a comma-separated list of one or more different field names", _one_or_more_names
)

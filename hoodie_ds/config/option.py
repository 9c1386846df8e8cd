"""What an option is: one declaration from which parsing, messages and the reference are made.

A group of options is a frozen dataclass. Each of its fields that a user may set is an `Option`: an
instance has the value, the class the declaration, so that ``options.num_buckets`` is a number and
``IndexOptions.num_buckets.key`` its name. (Of the group that declares it: mypy takes an inherited
one for its value.) An option that only decides about other fields is a ``ClassVar``. A string that
an option's `Kind` does not allow is an `OptionError` that says what is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from hoodie_ds.errors import OptionError

T = TypeVar("T")
V = TypeVar("V")
T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound=Enum)

_INT32_MAX: Final = 2**31 - 1
_BYTES_MAX: Final = 2**50
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE: Final = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?) *(?:([kmgt]?)(i?b)|([kmgt]))?", re.I)
_SPARK: Final = "spark."
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """A type of option value.

    Parameters
    ----------
    allowed : str
        The allowed strings, in words for an error message.
    parse : callable
        From a string without surrounding blanks to its value; ``None`` if it is not allowed.
    """

    allowed: str
    parse: Callable[[str], T_co | None]


class Option(Generic[T]):
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
    needed : str
        The remedy where it is not given, of an option that always has to be.
    """

    @overload
    def __init__(
        self,
        key: str,
        kind: Kind[T],
        doc: str,
        default: T,
        *,
        aliases: tuple[str, ...] = (),
        flink_kind: Kind[T] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Option[V | None],
        key: str,
        kind: Kind[V],
        doc: str,
        *,
        aliases: tuple[str, ...] = (),
        flink_kind: Kind[V] | None = None,
    ) -> None: ...
    @overload
    def __init__(self, key: str, kind: Kind[T], doc: str, *, needed: str) -> None: ...
    def __init__(
        self,
        key: str,
        kind: Kind[Any],
        doc: str,
        default: Any = None,
        *,
        aliases: tuple[str, ...] = (),
        flink_kind: Kind[Any] | None = None,
        needed: str | None = None,
    ) -> None:
        self.key, self.kind, self.doc, self.default = key, kind, doc, default
        self.aliases, self.flink_kind, self.needed = aliases, flink_kind, needed
        self.names = (key, *aliases)
        self.names_in_lower_case = tuple(map(str.lower, self.names))

    if TYPE_CHECKING:  # an instance has its value in its own ``__dict__``

        @overload
        def __get__(self, options: None, group: type) -> Option[T]: ...
        @overload
        def __get__(self, options: object, group: type) -> T: ...
        def __get__(self, options: object | None, group: type) -> Option[T] | T:
            """Tell type checkers what a group and an instance of it have."""

        def __set__(self, options: object, value: T) -> None:
            """Tell type checkers what a field of a group takes."""

    def parse(self, text: str, key: str | None = None) -> T:
        """Return the value of a string given under `key` (the option's own name by default)."""
        written = key or self.key
        hudi = without_spark(written).lower().startswith("hoodie.")
        kind = self.kind if hudi or self.flink_kind is None else self.flink_kind
        value: T | None = kind.parse(text.strip())
        if value is None:
            raise OptionError(written, text, f"allowed is {kind.allowed}")
        return value


def is_of_session(key: str) -> bool:
    """Whether a key is that of a setting of the Spark session, ``spark.hoodie.*``."""
    return key.lower().startswith(f"{_SPARK}hoodie.")


def without_spark(key: str) -> str:
    """Return the key of the option that a setting of the session gives; others as they are."""
    return key[len(_SPARK) :] if is_of_session(key) else key


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


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


def choice(members: type[E]) -> Kind[E]:
    """Return the kind whose values are an enum's members, in any letter case."""
    by_text = {str(member.value).lower(): member for member in members}
    listed = ", ".join(str(member.value) for member in members)
    return Kind(f"one of {listed}", lambda text: by_text.get(text.lower()))


def whole(allowed: str, *, least: int = 0, most: int = 999_999_999) -> Kind[int]:
    """Return the kind whose values are the whole numbers from `least` to `most`."""

    def parse(text: str) -> int | None:
        number = int(text) if re.fullmatch(r"[0-9]{1,19}", text) else -1
        return number if least <= number <= most else None

    return Kind(allowed, parse)


BOOLEAN: Final = Kind("true or false", _boolean)
POSITIVE_INT: Final = whole(f"a whole number from 1 to {_INT32_MAX}", least=1, most=_INT32_MAX)
BYTES: Final = Kind(
    "a size in bytes, or with a unit such as 128MB, from 1 byte to 1024 TB",
    lambda text: _size(text, bare_shift=0),
)
MEGABYTES: Final = Kind(
    "a size in megabytes, or with a unit such as 128MB, from 1 byte to 1024 TB",
    lambda text: _size(text, bare_shift=20),
)


def bytes_or_zero(meaning: str) -> Kind[int]:
    """Return the kind of a size that may be 0 or less, which has a meaning of its own."""

    def parse(text: str) -> int | None:
        return 0 if re.fullmatch(r"-?0+|-[0-9]{1,19}", text) else BYTES.parse(text)

    return Kind(f"{BYTES.allowed}, or 0 {meaning}", parse)


TEXT: Final = Kind("a non-empty string without control characters", _plain)
NAMES: Final = Kind("a comma-separated list of different field names, or nothing", _names)
ONE_OR_MORE_NAMES: Final = Kind(
    "a comma-separated list of one or more different field names",
    lambda text: _names(text) or None,
)
PARTITION_PATHS: Final = Kind(
    "a comma-separated list of different partition paths", ONE_OR_MORE_NAMES.parse
)

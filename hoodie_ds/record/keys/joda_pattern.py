"""Date patterns in the letters of Joda-Time, which Hudi's timestamp key generator uses.

A pattern is compiled once into a printer or a parser. Invariant: printed or accepted strings equal
Joda-Time's with English names; letters whose meaning depends on the clock, or that are not
supported, are refused when the pattern is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import MappingProxyType

from hoodie_ds.errors import OptionError

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z']+)")


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of a pattern: ``width`` times ``letter``, or a literal without a letter."""

    letter: str
    width: int
    literal: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it stands for digits, so that digits before it must have a limit."""
        if self.letter == "M":
            return self.width <= 2
        return self.letter != "" and self.letter in "yYdDeHhKkmsSxw"


Print = Callable[[datetime, int], str]


def _offset_text(moment: datetime, width: int) -> str:
    offset = moment.utcoffset() or timedelta()
    minutes = abs(offset) // timedelta(minutes=1)
    colon = ":" if width == 2 else ""
    return f"{'-' if offset < timedelta() else '+'}{minutes // 60:02d}{colon}{minutes % 60:02d}"


def _year(year: int, width: int) -> str:
    return f"{year % 100:02d}" if width == 2 else f"{year:0{width}d}"


def _name(name: str, width: int) -> str:
    return name if width >= 4 else name[:3]


def _fraction(moment: datetime, width: int) -> str:
    # Joda-Time has milliseconds: digits after them are printed as zeros.
    return f"{moment.microsecond // 1000:03d}".ljust(width, "0")[:width]


_PRINTERS: Mapping[str, Print] = MappingProxyType(
    {
        "y": lambda t, w: _year(t.year, w),
        "Y": lambda t, w: _year(t.year, w),
        "x": lambda t, w: _year(t.isocalendar()[0], w),
        "M": lambda t, w: f"{t.month:0{w}d}" if w < 3 else _name(_MONTHS[t.month - 1], w),
        "w": lambda t, w: f"{t.isocalendar()[1]:0{w}d}",
        "d": lambda t, w: f"{t.day:0{w}d}",
        "D": lambda t, w: f"{t.timetuple().tm_yday:0{w}d}",
        "E": lambda t, w: _name(_DAYS[t.weekday()], w),
        "e": lambda t, w: f"{t.isoweekday():0{w}d}",
        "a": lambda t, _: "AM" if t.hour < 12 else "PM",
        "H": lambda t, w: f"{t.hour:0{w}d}",
        "k": lambda t, w: f"{t.hour or 24:0{w}d}",
        "K": lambda t, w: f"{t.hour % 12:0{w}d}",
        "h": lambda t, w: f"{t.hour % 12 or 12:0{w}d}",
        "m": lambda t, w: f"{t.minute:0{w}d}",
        "s": lambda t, w: f"{t.second:0{w}d}",
        "S": _fraction,
        "Z": _offset_text,
    }
)


def _printable(token: Token) -> bool:
    return token.letter in _PRINTERS and (token.letter != "Z" or token.width <= 2)


@dataclass(frozen=True, slots=True)
class Printer:
    """A pattern that formats dates and times as strings."""

    tokens: tuple[Token, ...]

    @classmethod
    def compile(cls, pattern: str, option: str) -> Printer:
        """Compile an option's pattern; `OptionError` if empty or with an unsupported letter."""
        tokens = _tokens(pattern, option)
        for token in tokens:
            if token.letter and not _printable(token):
                raise _refused(option, pattern, token, "".join(_PRINTERS))
        return cls(tokens)

    def text(self, moment: datetime) -> str:
        """Format a date and time in its own zone."""
        return "".join(
            _PRINTERS[token.letter](moment, token.width) if token.letter else token.literal
            for token in self.tokens
        )

    def resolution(self) -> timedelta:
        """Return the shortest time that can change the string: 1 ms to 1 day."""
        letters = {token.letter for token in self.tokens}
        for letter_set, step in (
            ("S", timedelta(milliseconds=1)),
            ("sZ", timedelta(seconds=1)),
            ("m", timedelta(minutes=1)),
            ("HhKka", timedelta(hours=1)),
        ):
            if letters.intersection(letter_set):
                return step
        return timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Parser:
    """A pattern that reads strings, as a regular expression."""

    regex: re.Pattern[str]

    @classmethod
    def compile(cls, pattern: str, option: str) -> Parser:
        """Compile an option's pattern.

        An `OptionError` means that it has no year, or a letter that cannot be read back, such as
        ``yy``, whose century Joda-Time takes from the clock.
        """
        tokens = _tokens(pattern, option)
        letters = [token.letter for token in tokens if token.letter]
        pieces = []
        for i, token in enumerate(tokens):
            following = tokens[i + 1] if i + 1 < len(tokens) else Token("", 0)
            expression = _expression(token, following.is_number)
            if expression is None or letters.count(token.letter) > 1:
                raise _refused(option, pattern, token, "yyyyMdHhmsSaZ, each once")
            pieces.append(expression)
        halves = {"h", "a"}.intersection(letters)
        if "y" not in letters or len(halves) == 1 or (halves and "H" in letters):
            raise OptionError(option, pattern, "it needs a year, and AM or PM (a) just where h is")
        return cls(re.compile("".join(pieces), re.IGNORECASE | re.ASCII))

    def moment(self, text: str) -> tuple[datetime, timezone | None] | None:
        """Return a string's local date and time and its offset, if any; None if it does not match.

        A number out of its range, as in the 30th of February, is a `ValueError`.
        """
        match = self.regex.fullmatch(text)
        if match is None:
            return None
        found = {name: value for name, value in match.groupdict().items() if value is not None}
        hour = int(found.get("H", 0))
        if "h" in found:
            if not 1 <= int(found["h"]) <= 12:
                raise ValueError("hour must be in 1..12")
            hour = int(found["h"]) % 12 + (12 if found["a"].upper() == "PM" else 0)
        local = datetime(
            int(found["y"]),
            _month(found.get("M", "1")),
            int(found.get("d", 1)),
            hour,
            int(found.get("m", 0)),
            int(found.get("s", 0)),
            int(found.get("S", "0").ljust(3, "0")[:3]) * 1000,
        )
        return local, _offset(found["Z"]) if "Z" in found else None


def _tokens(pattern: str, option: str) -> tuple[Token, ...]:
    tokens: list[Token] = []
    position = 0
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None:
            raise OptionError(option, pattern, "close the quote ' of the literal text")
        position = match.end()
        if match[2]:
            tokens.append(Token(match[2], len(match[0])))
        else:
            quoted = match[1]
            literal = match[3] if quoted is None else (quoted.replace("''", "'") or "'")
            tokens.append(Token("", 0, literal))
    if not tokens:
        raise OptionError(option, pattern or None, "give a date pattern such as yyyy-MM-dd")
    return tuple(tokens)


def _expression(token: Token, digits_follow: bool) -> str | None:
    """Regular expression of one token; None if it cannot be read."""
    match token.letter:
        case "":
            return re.escape(token.literal)
        case "y" if token.width != 2:
            return r"\+?" + _greedy("y", rf"\d{{1,{token.width if digits_follow else 9}}}")
        case "M" if token.width >= 3:
            return _greedy("M", "|".join([*_MONTHS, *(name[:3] for name in _MONTHS)]))
        case "M" | "d" | "H" | "h" | "m" | "s":
            return _greedy(token.letter, rf"\d{{1,{max(token.width, 2)}}}")
        case "S":
            return _greedy("S", rf"\d{{1,{token.width}}}")
        case "a":
            return "(?P<a>[AP]M)"
        case "Z" if token.width <= 2:
            return r"(?P<Z>Z|[+-]\d\d(?::?\d\d)?)"
    return None


def _greedy(name: str, expression: str) -> str:
    """Match as much as possible without backtracking, as Joda-Time's parsers do."""
    return f"(?=(?P<{name}>{expression}))(?P={name})"


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    return 1 + [name[:3] for name in _MONTHS].index(text[:3].capitalize())


def _offset(text: str) -> timezone:
    if text in "Zz":
        return timezone.utc
    digits = text[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _refused(option: str, pattern: str, token: Token, offered: str) -> OptionError:
    shown = token.letter * token.width
    return OptionError(option, pattern, f"{shown!r} is not offered here; use {offered}")

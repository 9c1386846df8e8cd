"""Text of ``java.util.Properties``: what ``hoodie.properties`` and partition metadata are made of.

Invariant: `parse_properties` gives back exactly what `format_properties` was given, whatever the
keys and values hold; what could not come back is refused when it is written. The rules are those
of the ``load`` and ``store`` methods of the Java class library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Final

from hoodie_ds.errors import CorruptFileError, OptionError

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_KEY: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF: Final = re.compile("[\ud800-\udfff]")
_SPECIAL: Final = re.compile(r"[\\=:#!\x00-\x1f\x7f-\U0010ffff]")
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"


def parse_properties(text: bytes | str, path: str) -> dict[str, str]:
    """Return the entries of a properties file, in its order; of a key that occurs twice, the last.

    Bytes are Latin-1, as Java reads them. A malformed escape is a `CorruptFileError` that names
    `path`.
    """
    content = text.decode("latin-1") if isinstance(text, bytes) else text
    entries: dict[str, str] = {}
    for line in _logical_lines(content):
        key = _KEY.match(line)
        assert key is not None, "the pattern matches the empty string"
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None, "the pattern matches the empty string"
        entries[_unescape(key.group(), path)] = _unescape(line[separator.end() :], path)
    return entries


def format_properties(entries: Mapping[str, str], comments: Sequence[str] = ()) -> bytes:
    """Return entries, sorted by key, after comment lines: ASCII, lines end with a line feed.

    Half a surrogate pair, which is no character, is an `OptionError`.
    """
    lines = ["#" + _SPECIAL.sub(_escape_control, comment) for comment in comments]
    for key, value in sorted(entries.items()):
        if _HALF.search(key) or _HALF.search(value):
            raise OptionError(ascii(key), ascii(value), "it holds half of a surrogate pair")
        lines.append(f"{_escape(key).replace(' ', chr(92) + ' ')}={_escape_value(value)}")
    return "".join(line + "\n" for line in lines).encode("ascii")


def java_date(now_ms: int) -> str:
    """Return milliseconds since the Unix epoch as Java's ``Date.toString`` shows them in UTC."""
    at = datetime.fromtimestamp(now_ms / 1000, timezone.utc)
    day, month = _DAYS[at.weekday()], _MONTHS[at.month * 3 - 3 : at.month * 3]
    return f"{day} {month} {at.day:02d} {at:%H:%M:%S} UTC {at.year}"


def iso_time(now_ms: int) -> str:
    """Return a time as ISO 8601 with milliseconds, in UTC; `now_ms` since the Unix epoch."""
    at = datetime.fromtimestamp(now_ms / 1000, timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{now_ms % 1000:03d}Z"


def _logical_lines(content: str) -> list[str]:
    """Return the lines that hold entries, continuation lines joined, leading blanks removed."""
    lines: list[str] = []
    parts: list[str] = []
    continued = False
    for natural in _LINE_END.split(content):
        line = natural.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        parts.append(line[:-1] if continued else line)
        if not continued:
            lines.append("".join(parts))
            parts.clear()
    return lines if not continued else [*lines, "".join(parts)]


def _unescape(text: str, path: str) -> str:
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        escape = match.group(1)
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        if escape == "u":
            raise CorruptFileError(f"{path}: malformed \\u escape in {text[:100]!r}")
        return _LETTERS.get(escape, escape)

    plain = _PAIR.sub(_join_pair, _ESCAPE.sub(character, text))
    if _HALF.search(plain):
        raise CorruptFileError(f"{path}: half of a surrogate pair in {text[:100]!r}")
    return plain


def _join_pair(match: re.Match[str]) -> str:
    return match.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _escape_value(value: str) -> str:
    # Only a leading blank needs an escape: the separator would swallow it.
    return "\\" + _escape(value) if value.startswith(" ") else _escape(value)


def _escape(text: str) -> str:
    return _SPECIAL.sub(_escape_special, text)


def _escape_special(match: re.Match[str]) -> str:
    character = match.group()
    for letter, meaning in _LETTERS.items():
        if character == meaning:
            return "\\" + letter
    return "\\" + character if character in "\\=:#!" else _code_units(character)


def _escape_control(match: re.Match[str]) -> str:
    character = match.group()
    return character if character in "\\=:#!" else _code_units(character)


def _code_units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))

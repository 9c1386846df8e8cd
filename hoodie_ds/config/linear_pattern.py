"""Regular expressions that others wrote, matched in time linear in the string.

A table's properties may name any expression, and Java's and Python's engines go back and try again:
``(a+)+$`` takes them twice as long with each further character. RE2, which Arrow brings, does not.
What an expression finds is what Java's ``find`` finds: where RE2 reads a text in another way, it is
given another one. What it has no counterpart for is refused: back references, look-around.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from string import ascii_letters
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

ESCAPE: Final = r"\\[dDwWsS!-/:-@\[-`{-~]"
"""A class of characters, or one that has no meaning of its own."""

_IGNORING_CASE: Final = "(?i)"
_IN_CLASS: Final = rf"(?:(?!--)[^\\\[\]&~|,;\x00-\x1f\x7f-\x9f]|{ESCAPE})"
# Left out: flags but for a leading (?i), Unicode classes, back references, look-around, \b and
# named groups, nested and intersected classes, commas and semicolons, which part rules.
_ACCEPTED: Final = re.compile(
    rf"""(?: [^\\\[\](){{}}.*+?^$|,;\x00-\x1f\x7f-\x9f]
      | [.^$|)*+?]
      | \{{[0-9]{{1,4}}\}}
      | \((?:\?:|(?!\?))
      | {ESCAPE}
      | \[\^?{_IN_CLASS}+\]
    )*""",
    re.VERBOSE,
)
_TOKEN: Final = re.compile(rf"\[(\^?)({_IN_CLASS}+)\]|({ESCAPE})|([^\\])", re.DOTALL)
_MEMBER: Final = re.compile(rf"({ESCAPE}|.)(?:-({ESCAPE}|.))?", re.DOTALL)

# Java counts a vertical tab among the blanks, RE2 does not.
_BLANKS: Final = r"\t-\r\x20"
_NO_BLANKS: Final = r"\x00-\x08\x0e-\x1f\x21-\x{10ffff}"
_CLASSES: Final = {r"\s": _BLANKS, r"\S": _NO_BLANKS}


def is_linear(pattern: str) -> bool:
    """Whether an expression is one that Java reads, and that is found here as it is there."""
    if not pattern or not _ACCEPTED.fullmatch(pattern.removeprefix(_IGNORING_CASE)):
        return False
    try:
        re.compile(pattern, re.ASCII)  # as strict as Java where RE2 is not
        is_found(pattern, "")
    except (re.error, OverflowError, RecursionError, pa.ArrowInvalid):
        return False
    return True


@lru_cache(maxsize=4096)
def is_found(pattern: str, text: str) -> bool:
    """Whether an accepted expression is found anywhere in a string without line ends."""
    found = pc.match_substring_regex(pa.array([text], pa.string()), _translated(pattern))
    return bool(found[0].as_py())


@lru_cache(maxsize=64)
def _translated(pattern: str) -> str:
    """The expression as RE2 is to read it: without flags, whose letter case is that of Unicode."""
    bare = pattern.removeprefix(_IGNORING_CASE)
    return "".join(_parts(bare, ignoring_case=bare != pattern))


def _parts(pattern: str, *, ignoring_case: bool) -> Iterator[str]:
    for token in _TOKEN.finditer(pattern):
        negation, members, escape, other = token.groups()
        if members is not None:
            yield f"[{negation}{''.join(_members(members, ignoring_case=ignoring_case))}]"
        elif escape is not None:
            yield f"[{_CLASSES[escape]}]" if escape in _CLASSES else escape
        elif ignoring_case and other in ascii_letters:
            yield f"[{other}{other.swapcase()}]"
        else:
            yield other


def _members(members: str, *, ignoring_case: bool) -> Iterator[str]:
    for member in _MEMBER.finditer(members):
        first, last = member.groups()
        if first in (r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"):
            yield _CLASSES.get(first, first)  # never part of a range: Python refuses that
            continue
        low, high = ord(first[-1]), ord((last or first)[-1])
        yield rf"\x{{{low:x}}}-\x{{{high:x}}}"
        if ignoring_case:
            yield from (c.swapcase() for c in ascii_letters if low <= ord(c) <= high)

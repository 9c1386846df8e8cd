"""Checks a schema in Spark's DDL, as far as possible without Spark: names, types and brackets."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|\S)")
_NAME: Final = re.compile(r"`.+`|\w+", re.DOTALL)
_TYPE_WORDS: Final = """array bigint binary boolean byte char character date dec decimal double
float geography geometry int integer interval long map numeric real short smallint string struct
time timestamp timestamp_ltz timestamp_ntz tinyint varchar variant void"""
_CLAUSE_WORDS: Final = """( not null comment default collate generated with without
year month day hour minute second to"""
_TYPES: Final = frozenset(_TYPE_WORDS.split())
_AFTER_A_TYPE: Final = frozenset(_CLAUSE_WORDS.split())
_OPEN: Final = {"<": ">", "(": ")"}


def ddl_fault(text: str) -> str | None:
    """Return what is wrong with a schema in Spark's DDL; None if nothing is."""
    try:
        _columns(_TOKEN.findall(text), 0, "")
    except _FaultError as fault:
        return str(fault)
    return None


class _FaultError(Exception):
    pass


def _columns(tokens: list[str], at: int, end: str) -> int:
    """Skip columns up to a closing bracket, or the end of the string."""
    while True:
        name = _at(tokens, at)
        if not _NAME.fullmatch(name):
            raise _FaultError(f"a column's name is expected, not {name or 'nothing'!r}")
        at += 2 if _at(tokens, at + 1) == ":" else 1
        at = _type(tokens, at, name.strip("`"))
        at = _clauses(tokens, at)
        if _at(tokens, at) == end:
            return at
        if _at(tokens, at) != ",":
            wanted = f"',' or {end!r}" if end else "','"
            found = _at(tokens, at) or "the end"
            raise _FaultError(f"{wanted} is expected after column {name!r}, not {found!r}")
        at += 1


def _type(tokens: list[str], at: int, column: str) -> int:
    kind = _at(tokens, at).lower()
    if kind not in _TYPES:
        raise _FaultError(f"column {column!r} has the type {kind!r}, which Spark does not know")
    at += 1
    if kind not in ("array", "map", "struct"):
        return at
    if _at(tokens, at) != "<":
        raise _FaultError(f"the {kind} of column {column!r} needs its types in <>")
    if kind == "struct":
        at = at + 1 if _at(tokens, at + 1) == ">" else _columns(tokens, at + 1, ">")
    else:
        at = _clauses(tokens, _type(tokens, at + 1, column))
        if kind == "map":
            if _at(tokens, at) != ",":
                raise _FaultError(f"the map of column {column!r} needs two types")
            at = _clauses(tokens, _type(tokens, at + 1, column))
    if _at(tokens, at) != ">":
        raise _FaultError(f"the {kind} of column {column!r} is not closed by >")
    return at + 1


def _clauses(tokens: list[str], at: int) -> int:
    """Skip what may follow a type: its size, NOT NULL, a comment, a default."""
    closing: list[str] = []
    if _at(tokens, at) not in ("", ",", ">") and _at(tokens, at).lower() not in _AFTER_A_TYPE:
        raise _FaultError(f"there is {_at(tokens, at)!r} after a type; a comma may be missing")
    while at < len(tokens) and (closing or tokens[at] not in (",", ">")):
        if tokens[at] in _OPEN:
            closing.append(_OPEN[tokens[at]])
        elif closing and tokens[at] == closing[-1]:
            closing.pop()
        at += 1
    if closing:
        raise _FaultError(f"a bracket is not closed by {closing[-1]}")
    return at


def _at(tokens: list[str], at: int) -> str:
    return tokens[at] if at < len(tokens) else ""

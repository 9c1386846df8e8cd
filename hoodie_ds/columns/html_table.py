"""Rows as an HTML table, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any


def html_table(title: str, rows: Iterable[Mapping[str, Any]], total: int) -> str:
    """Return an HTML table of rows with the same keys, out of `total`, under a caption."""
    shown = list(rows)
    heads = "".join(f"<th>{escape(name)}</th>" for name in (shown[0] if shown else ()))
    body = "".join(_line(row.values()) for row in shown)
    more = f" ({len(shown):,} of {total:,})" if total > len(shown) else ""
    caption = f"<caption>{escape(title)}{more}</caption>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _line(values: Iterable[object]) -> str:
    return "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in values) + "</tr>"


def _cell(value: object) -> str:
    if isinstance(value, Mapping):
        return "<br>".join(escape(f"{key} = {one}") for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return escape(", ".join(map(str, value)))
    return "" if value is None else escape(str(value))

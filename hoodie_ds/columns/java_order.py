"""The order in which Java compares strings, of keys in files and statistics that it sorts."""

from __future__ import annotations


def java_order(string: str) -> bytes:
    """Return what strings sort by as in Java: their UTF-16 code units, lone surrogates too."""
    return string.encode("utf-16-be", "surrogatepass")

"""The order in which Java compares strings, of keys in files and statistics that it sorts."""

from __future__ import annotations


def java_order(string: str) -> bytes:
    """Return what strings sort by as in Java: their UTF-16 code units, lone surrogates too."""
    return string.encode("utf-16-be", "surrogatepass")


def may_differ_in_java(low: str, high: str) -> bool:
    """Whether strings between two ends in Java's order may not be between them by their bytes.

    In UTF-16 the surrogates of characters beyond U+FFFF come before U+E000 to U+FFFF.
    """
    return any(one > "\uffff" for one in low) or any("\ue000" <= one <= "\uffff" for one in high)

"""What the suite did, counted while it does it."""

from __future__ import annotations

from collections import Counter

COUNTS: Counter[str] = Counter()


def tally(what: str, number: int) -> None:
    """Count."""
    COUNTS[what] += number

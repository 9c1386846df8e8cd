"""What the suite did, counted while it does it, and the goals; `python -m tests.faults.tally`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

COUNTS: Counter[str] = Counter()

GOALS: Final = {
    "scenarios": (14, "streams that are killed, each with something of its own"),
    "crash points": (2_500, "ends of a process before, after or within a storage operation"),
    "malformed files": (4_000, "damaged or forged inputs of fourteen formats"),
    "byte positions": (6_000, "bytes of committed files flipped, or the rest cut off, one by one"),
    "partition values": (1_500, "tables with partition values that are made to do harm"),
    "hostile options": (1_500, "writes with options that are malformed, extreme or contradictory"),
    "seeds": (150, "simulated streams with random tasks, retries, aborts and faults"),
}
"""Least number of each in a run without slow tests; asserted by the suite itself."""

README: Final = Path(__file__).parents[1] / "README.md"


def tally(what: str, number: int) -> None:
    """Count."""
    COUNTS[what] += number


def reached(*what: str) -> None:
    """Fail unless the goals were met by this run."""
    for name in what:
        assert COUNTS[name] >= GOALS[name][0], (name, COUNTS[name])


def readme() -> str:
    """The text of ``tests/README.md``."""
    lines = [f"| {name} | {goal:,} | {what} |" for name, (goal, what) in GOALS.items()]
    return "\n".join(
        [
            "# Tests that count what they try",
            "",
            "`tests/faults` asserts that each run reaches these numbers. This file is made by "
            "`python -m tests.faults.tally`.",
            "",
            "| what | at least | meaning |",
            "|---|---|---|",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    README.write_text(readme(), "utf-8")

"""What the suite did, counted while it does it, and the goals; `python -m tests.faults.tally`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

COUNTS: Counter[str] = Counter()

GOALS: Final = {
    "scenarios": (14, "streams that are killed, each with something of its own"),
    "crash points": (2_500, "ends of a process before, after or within a storage operation"),
    "seeds": (150, "simulated streams with random tasks, retries, aborts and faults"),
    "pairs of crashes": (750, "a process ends, and the one that recovers from it does too"),
    "schedules": (2_772, "orders in which the phases of two processes follow one another"),
    "model steps": (19_000, "steps of random streams, writers and crashes against a dictionary"),
    "mutants": (30, "bugs planted one at a time, each found by the test that is named for it"),
    "pairs of crashes, nightly": (40_000, "all of them"),
    "seeds, nightly": (5_000, "more of the same"),
    "schedules, nightly": (7_392, "further pairs of processes"),
}
"""Least number of each in a full check, or in a nightly run; asserted by the suite itself."""

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

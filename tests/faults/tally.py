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
    "races, local": (500, "two processes put one name at the same time, on a disk"),
    "races, s3": (500, "the same on moto"),
    "races, versitygw": (500, "the same on versitygw, where Go is"),
    "crash points on S3": (40, "ends of a process after a change to a table on an S3 server"),
    "Spark drivers killed": (8, "SIGKILL of the driver of a real stream at a named point"),
    "streams killed, nightly": (60, "the same at every point, for each table type and index"),
    "batches of a stream killed ten times, nightly": (500, "at random points"),
    "unsafe variants": (36, "protocols with a rule left out; each way to the damage is found"),
    "model states": (2_000_000, "states of protocols in which every promise holds"),
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
            "The suites assert that each run reaches these numbers. This file is made by "
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

"""What the suite did, counted while it does it, and the goals; `python -m tests.faults.tally`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

COUNTS: Counter[str] = Counter()

GOALS: Final = {
    "scenarios": (14, "streams that are killed, each with something of its own"),
    "crash points": (2_500, "ends of a process before, after or within a storage operation"),
    "power losses": (
        500,
        "disks of a machine that stopped: what was synced, and part of the rest",
    ),
    "crash points on S3": (40, "ends of a process after a change to a table on an S3 server"),
    "schedules": (2_772, "orders in which the phases of two processes follow one another"),
    "seeds": (150, "simulated streams with random tasks, retries, aborts and faults"),
    "stateful examples": (
        1_200,
        "random streams, 200 for each table type and each of three indexes",
    ),
    "model steps": (30_000, "their steps, up to 40 each, against a dictionary"),
    "unsafe variants": (36, "protocols with a rule left out; each way to the damage is found"),
    "model states": (2_000_000, "states of protocols in which every promise holds"),
    "malformed files": (4_000, "damaged or forged inputs of fourteen formats"),
    "byte positions": (6_000, "bytes of committed files flipped, or the rest cut off, one by one"),
    "partition values": (1_500, "tables with partition values that are made to do harm"),
    "hostile options": (1_500, "writes with options that are malformed, extreme or contradictory"),
    "races, local": (500, "two processes put one name at the same time, on a disk"),
    "races, s3": (500, "the same on moto"),
    "races, versitygw": (500, "the same on versitygw, where Go is"),
    "Spark drivers killed": (8, "SIGKILL of the driver of a real stream at a named point"),
    "mutants": (30, "bugs planted one at a time, each found by the test that is named for it"),
    "pairs of crashes, nightly": (40_000, "a process ends, and the one that recovers does too"),
    "power losses, nightly": (5_500, "all of them"),
    "odd answers, nightly": (4_500, "reads and listings that tell a writer what is not stored"),
    "seeds, nightly": (5_000, "more of the same"),
    "schedules, nightly": (7_392, "further pairs of processes"),
    "streams killed, nightly": (60, "at every named point, for each table type and index"),
    "batches of a stream killed ten times, nightly": (500, "at random points"),
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
            "The suite asserts that `.ci/run` reaches these numbers, and a nightly run those that "
            "say so. This file is made by `python -m tests.faults.tally`.",
            "",
            "| what | at least | meaning |",
            "|---|---|---|",
            *lines,
            "",
            "Of all branches of the package `.ci/run` demands that the suite of the README's "
            "test command takes at least 95 %, and all of those in `timeline`, `sink`, `services`, "
            "`storage` and `table`.",
            "",
        ]
    )


if __name__ == "__main__":
    README.write_text(readme(), "utf-8")

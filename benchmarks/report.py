"""Joins the JSON lines of one run of ``benchmarks/run`` into a table: medians and ratios."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path


def medians(path: Path) -> dict[str, float]:
    """Median seconds of each work; the warm-up round counts only where there is no other."""
    taken: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for text in path.read_text().splitlines():
        line = json.loads(text)
        taken[line["work"]].append((line.get("warm_up", False), line["seconds"]))
    found = {}
    for work, rounds in taken.items():
        measured = [seconds for warm_up, seconds in rounds if not warm_up]
        found[work] = statistics.median(measured or [seconds for _, seconds in rounds])
    return found


def main() -> None:
    """Print the tables."""
    folder = Path(sys.argv[1])
    ours, jvm = medians(folder / "ours.jsonl"), medians(folder / "jvm.jsonl")
    print("| work | JVM Hudi, s | hoodie_ds, s | times faster |\n|---|---|---|---|")
    for work, seconds in ours.items():
        theirs = jvm.get(work.removesuffix(", no shuffle"))
        if work == "parquet sink, append" or theirs is None:
            continue
        print(f"| {work} | {theirs:.1f} | {seconds:.1f} | {theirs / seconds:.1f} |")
    sink, append = ours["parquet sink, append"], ours["bulk_insert, no keys"]
    print(f"\nAppend without keys: {append:.2f} s, Spark's parquet sink {sink:.2f} s, ", end="")
    print(f"ratio {append / sink:.2f}.\n\n| work | value |\n|---|---|")
    for name in ("merge", "micro", "memory"):
        for work, seconds in medians(folder / f"{name}.jsonl").items():
            print(f"| {work} | {seconds:g} |")


if __name__ == "__main__":
    main()

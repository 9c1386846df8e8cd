"""Joins the JSON lines of one run of ``benchmarks/run`` into tables: medians, ratios, goals."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

INDEX_GOAL = 5.0
SERVICE_GOAL = 5.0
TIMES_FASTER = {
    "first keyed load, COW": 8.0,
    "first keyed load, MOR": 8.0,
    "upsert 10 %, COW": 7.0,
    "upsert 10 %, MOR": 4.0,
    "second upsert 10 %, MOR": 4.0,
    "snapshot scan, MOR, two log layers": 4.0,
}
FIGURES = {
    "merge": "Merge",
    "micro": "Micro-batches",
    "memory": "Memory",
    "tasks": "Throughput and evenness by the number of tasks",
    "checkpoint": "A checkpoint as the batch grows",
    "append": "Exactly-once against a bare Arrow writer",
    "size": "Ten file groups in small and large tables",
    "services": "What table services cost",
    "reading": "Reading without Spark",
    "changes": "Changing rows without Spark",
    "metadata": "What a metadata table costs and saves",
}


def lines(path: Path) -> list[dict[str, Any]]:
    """What a benchmark printed; nothing if it did not run."""
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def medians(path: Path) -> dict[str, float]:
    """Median of each work; the warm-up round counts only where there is no other."""
    taken: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for line in lines(path):
        taken[line["work"]].append((line.get("warm_up", False), line["seconds"]))
    found = {}
    for work, rounds in taken.items():
        measured = [seconds for warm_up, seconds in rounds if not warm_up]
        found[work] = statistics.median(measured or [seconds for _, seconds in rounds])
    return found


def engines_table(
    ours: dict[str, float], jvm: dict[str, float], goals: dict[str, float], default: float | None
) -> str:
    """Ours against the JVM's, for works that both have; the state index against its bloom index."""
    rows = ["| work | JVM Hudi, s | hoodie_ds, s | times faster | goal |", "|---|---|---|---|---|"]
    for work, seconds in ours.items():
        same = work.removesuffix(", no shuffle").replace("FLINK_STATE", "BLOOM")
        if work == "parquet sink, append" or same not in jvm:
            continue
        goal = goals.get(same, default)
        told = "" if goal is None else f"{goal:g}"
        faster = f"{jvm[same]:.2f} | {seconds:.2f} | {jvm[same] / seconds:.1f}"
        rows.append(f"| {work} | {faster} | {told} |")
    return "\n".join(rows)


def figures_table(path: Path) -> str:
    """Figures in the order of their first appearance, each with its ratio to its baseline."""
    found = medians(path)
    told = {line["work"]: line for line in lines(path)}
    rows = ["| work | figure | of its baseline | goal |", "|---|---|---|---|"]
    for work, figure in found.items():
        baseline, goal = told[work].get("against"), told[work].get("goal")
        ratio = f"{figure / found[baseline]:.2f}" if found.get(baseline) else ""
        rows.append(f"| {work} | {figure:.4g} | {ratio} | {'' if goal is None else goal} |")
    return "\n".join(rows)


def main() -> None:
    """Print the tables."""
    folder = Path(sys.argv[1])
    ours, jvm = medians(folder / "ours.jsonl"), medians(folder / "jvm.jsonl")
    print(engines_table(ours, jvm, TIMES_FASTER, None))
    sink, append = ours["parquet sink, append"], ours["bulk_insert, no keys"]
    print(f"\nAppend without keys: {append:.2f} s, Spark's parquet sink {sink:.2f} s, ", end="")
    print(f"ratio {append / sink:.2f}.\n")
    ours, jvm = medians(folder / "index.jsonl"), medians(folder / "jvm-index.jsonl")
    later = {work: seconds for work, seconds in ours.items() if work.endswith("later batches")}
    print("Upserts by looking keys up\n\n" + engines_table(later, jvm, {}, INDEX_GOAL))
    ours, jvm = medians(folder / "services.jsonl"), medians(folder / "jvm-services.jsonl")
    print("\nCompaction\n\n" + engines_table(ours, jvm, {}, SERVICE_GOAL))
    for name, title in FIGURES.items():
        print(f"\n{title}\n\n{figures_table(folder / f'{name}.jsonl')}")


if __name__ == "__main__":
    main()

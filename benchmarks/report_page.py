"""How long a browser takes to open the page of a large table.

    .venv/bin/python benchmarks/report_page.py WORK [--rounds 5]

The page of a small table is given the facts of one with 10,000 commits, as many cleans, and 10,000
file groups in 1,000 partitions. A headless Chromium opens it; the page writes down the milliseconds
since it was asked for until all is drawn, by the browser's own clock.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
from results import emit

from hoodie_ds import HoodieTable

COUNT, BEGIN, STEP = 10_000, 1_790_000_000_000, 30_000


def large(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a small table as those of a large one."""
    draw = random.Random(1)
    times = [BEGIN + STEP * number for number in range(COUNT)]
    commits, timeline = facts["commits"], facts["timeline"]
    for name in set(commits) - {"operations", "queries"}:
        commits[name] = [draw.randrange(1, 1_000_000) for _ in times]
    commits |= {"time": times, "operation": [0] * COUNT, "query": [0] * COUNT}
    commits |= {"batch": list(range(COUNT)), "queries": ["a query"]}
    for name in ("state", "archived"):
        timeline[name] = [0] * 2 * COUNT
    timeline |= {
        "time": sorted(times * 2),
        "action": [0, 1] * COUNT,
        "actions": ["commit", "clean"],
    }
    timeline["duration"] = [draw.randrange(50, 5_000) for _ in range(2 * COUNT)]
    facts["groups"] = {n: [draw.randrange(1 << 27) for _ in times] for n in ("base", "log")}
    (partition,) = facts["partitions"]
    facts["partitions"] = [{**partition, "partition": f"day={n}"} for n in range(500)]
    return facts


def main() -> None:
    """Make the page and open it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    table = HoodieTable(str(given.work / "table"), {"hoodie.table.name": "large"})
    table.insert(pa.table({"id": ["a"]}))
    page = table.inspect.report()
    before, text, after = re.split(r'(?<=id="facts">)(.*?)(?=</script>)', page, maxsplit=1)
    path = given.work / "page.html"
    path.write_text(before + json.dumps(large(json.loads(text))) + after)
    emit("size of the page, KB", path.stat().st_size >> 10)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,1700"]
    command = ["chromium", *flags, "--dump-dom", path.resolve().as_uri()]
    for _ in range(given.rounds):
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        (ready,) = re.findall(r'data-ready="(\d+)"', shown)
        emit("opened and drawn, 10,000 commits and file groups", int(ready) / 1000, goal=2)


if __name__ == "__main__":
    main()

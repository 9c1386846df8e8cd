"""A table by the library, and queries of it by DuckDB, without Spark.

``python -m examples.library_duckdb [FOLDER]`` needs the extra ``sql``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import hoodie_ds

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
RIDES = {
    "id": ["a", "b", "c"],
    "city": ["oslo", "rome", "rome"],
    "fare": [9.5, 12.0, None],
    "ts": [1, 1, 1],
}


def main(folder: Path) -> tuple[list[Any], list[Any]]:
    """Write three rides, change one; return rides and fares by city, and what was changed."""
    table = hoodie_ds.HoodieTable(folder / "rides", OPTIONS)
    first = table.upsert(pa.table(RIDES))
    table.update({"fare": 8.0}, where="fare is null")

    # DuckDB finds both by their names, and takes the scan batch by batch
    rides = table.scan(["city", "fare"], filter=("city", "in", ["oslo", "rome"]))  # noqa: F841
    changes = table.read_changes(first)  # noqa: F841 - rows before and after, as JSON
    fares = duckdb.sql("SELECT city, count(*), sum(fare) FROM rides GROUP BY city ORDER BY city")
    changed = duckdb.sql("SELECT after->>'id', before->>'fare', after->>'fare' FROM changes")
    return fares.fetchall(), changed.fetchall()


if __name__ == "__main__":
    for line in main(Path(sys.argv[1] if len(sys.argv) > 1 else ".work/examples")):
        print(*line, sep="\n")

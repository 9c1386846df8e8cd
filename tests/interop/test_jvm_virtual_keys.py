"""Tables without stored record keys, as Apache Hudi on the JVM and this library write them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from tests.interop.jvm_hudi import JvmHudi
from tests.tables import BUCKETS, KEY, ORDERING, PARTITION, TYPE, TYPES, found, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

COW, MOR = TYPES
KEYED = {"hoodie.table.name": "trips", KEY: "id", PARTITION: "city", ORDERING: "ts"}
VIRTUAL = {**KEYED, "hoodie.populate.meta.fields": "false"}
Row = tuple[str, str, int, float]


def answer(jvm_hudi: JvmHudi, path: Path) -> list[Row]:
    rows = jvm_hudi.read(path).select(["id", "city", "ts", "fare"]).to_pylist()
    return sorted((row["id"], row["city"], row["ts"], row["fare"]) for row in rows)


@pytest.mark.parametrize(
    ("kind", "version", "index"),
    by_day(
        product(TYPES, "689", ("SIMPLE", "BUCKET")),
        {(COW, "6", "SIMPLE"), (COW, "9", "BUCKET"), (MOR, "8", "SIMPLE"), (MOR, "9", "BUCKET")},
    ),
)
def test_both_write_in_turns(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str, index: str
) -> None:
    given = {
        **VIRTUAL,
        TYPE: kind,
        "hoodie.write.table.version": version,
        "hoodie.index.type": index,
        **({BUCKETS: "2"} if index == "BUCKET" else {}),
    }
    table = HoodieTable(str(tmp_path), given)
    table.upsert(trips(*((f"k{n}", "xy"[n % 2], 5, float(n)) for n in range(8))))
    rows = {f"k{n}": (f"k{n}", "xy"[n % 2], 5, float(n)) for n in range(8)}
    for ts in (6, 8):
        jvm_hudi.write(
            tmp_path,
            trips(("k1", "y", ts, 1.5), ("k2", "x", 4, 9.0), (f"j{ts}", "x", ts, 0.5)),
            {**given, "hoodie.compact.inline": "false"},
        )
        rows |= {"k1": ("k1", "y", ts, 1.5), f"j{ts}": (f"j{ts}", "x", ts, 0.5)}
        assert found(table) == answer(jvm_hudi, tmp_path) == sorted(rows.values())
        table.upsert(trips(("k1", "y", ts + 1, 2.5), (f"o{ts}", "y", ts, 0.5), ("j6", "x", 5, 7.0)))
        table.delete(trips((f"k{ts - 2}", "x", 9, None)).select(["id", "city"]))
        rows |= {"k1": ("k1", "y", ts + 1, 2.5), f"o{ts}": (f"o{ts}", "y", ts, 0.5)}
        del rows[f"k{ts - 2}"]
        assert found(table) == answer(jvm_hudi, tmp_path) == sorted(rows.values())
    if kind == "MERGE_ON_READ":
        assert table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
        assert found(table) == answer(jvm_hudi, tmp_path) == sorted(rows.values())

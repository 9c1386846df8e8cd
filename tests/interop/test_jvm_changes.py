"""The JVM's queries of changes over commits of ours, held against a model of the rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.golden.golden_tables import CDC_QUERY
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.tables import TYPE
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

READ: Final = "hoodie.datasource.read."
_COLUMNS = {"id": pa.string(), "name": pa.string(), "n": pa.int32(), "ts": pa.int64()}
SCHEMA: Final = pa.schema(_COLUMNS)
OPTIONS: Final = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.cdc.enabled": "true",
    TABLE_VERSION: "9",
}
Row = dict[str, Any]
Rows = dict[str, Row]


class Changed:
    """A table of ours, its rows as a model has them, and the changes that each write makes."""

    def __init__(self, path: Path, options: dict[str, str]) -> None:
        self.table = HoodieTable(str(path), options)
        self.rows: Rows = {}
        self.expected: list[Counter[str]] = []

    def upsert(self, *rows: tuple[str, str | None, int]) -> None:
        new = self._rows(rows)
        self.table.upsert(self._table(new))
        won = {k: r for k, r in new.items() if k not in self.rows or r["ts"] >= self.rows[k]["ts"]}
        self._expect({key: (self.rows.get(key), row) for key, row in won.items()})
        self.rows = {**self.rows, **won}

    def delete(self, *keys: str) -> None:
        self.table.delete(pa.table({"id": list(keys)}))
        self._expect({key: (self.rows.pop(key), None) for key in keys})

    def overwrite(self, *rows: tuple[str, str | None, int]) -> None:
        new = self._rows(rows)
        self.table.overwrite(self._table(new))
        self._expect({key: (row, None) for key, row in self.rows.items()})
        self.expected[-1] += Counter(_change(None, row) for row in new.values())
        self.rows = new

    def compact(self) -> None:
        assert self.table.compact()
        self.expected.append(Counter())

    def _expect(
        self, pairs: dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]
    ) -> None:
        self.expected.append(Counter(_change(before, after) for before, after in pairs.values()))

    @staticmethod
    def _rows(rows: tuple[tuple[str, str | None, int], ...]) -> Rows:
        return {k: {"id": k, "name": name, "n": ts * 10, "ts": ts} for k, name, ts in rows}

    @staticmethod
    def _table(rows: Rows) -> pa.Table:
        return pa.Table.from_pylist(list(rows.values()), schema=SCHEMA)


def _change(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    op = "i" if before is None else "d" if after is None else "u"
    return json.dumps([op, *map(_plain, (before, after))], sort_keys=True)


def _plain(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """A row without meta columns and nulls, which Hudi leaves out of some images."""
    if row is None:
        return None
    return {k: v for k, v in row.items() if not k.startswith("_hoodie_") and v is not None}


def _answer(jvm_hudi: JvmHudi, path: Path, begin: str, end: str) -> Counter[str]:
    options = {**CDC_QUERY, f"{READ}begin.instanttime": begin, f"{READ}end.instanttime": end}
    found = jvm_hudi.read(path, options).to_pylist()
    images = [[json.loads(row[side] or "null") for side in ("before", "after")] for row in found]
    told = [_change(before, after) for before, after in images]
    ops = [json.loads(change)[0] for change in told]
    assert [row["op"] for row in found] == ops
    return Counter(told)


@pytest.mark.parametrize(
    ("kind", "index", "logging"),
    by_day(
        [
            ("COPY_ON_WRITE", "SIMPLE", "DATA_BEFORE_AFTER"),
            ("COPY_ON_WRITE", "BUCKET", "OP_KEY_ONLY"),
            ("MERGE_ON_READ", "SIMPLE", "DATA_BEFORE"),
            ("MERGE_ON_READ", "BUCKET", "DATA_BEFORE_AFTER"),
        ],
        {
            ("COPY_ON_WRITE", "BUCKET", "OP_KEY_ONLY"),
            ("MERGE_ON_READ", "SIMPLE", "DATA_BEFORE"),
            ("MERGE_ON_READ", "BUCKET", "DATA_BEFORE_AFTER"),
        },
    ),
)
def test_hudi_tells_what_our_commits_changed(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, index: str, logging: str
) -> None:
    options = {
        **OPTIONS,
        TYPE: kind,
        "hoodie.table.name": f"changes_{kind}_{index}".lower(),
        "hoodie.index.type": index,
        "hoodie.table.cdc.supplemental.logging.mode": logging,
        **({"hoodie.bucket.index.num.buckets": "1"} if index == "BUCKET" else {}),
    }
    path = tmp_path / "t"
    changed = Changed(path, options)
    changed.upsert(("a", "x", 1), ("b", None, 1), ("c", "x", 1))
    changed.upsert(("a", "y", 2), ("d", "y", 2))
    changed.upsert(("a", "late", 1), ("b", "z", 3))
    changed.delete("c")
    if kind == "MERGE_ON_READ":
        changed.compact()
    changed.upsert(("c", "again", 4), ("b", None, 5))
    changed.overwrite(("a", "new", 6), ("e", "new", 6))
    changed.upsert(("e", "newer", 7), ("f", None, 7))

    commits = [i for i in changed.table.timeline.completed if "commit" in i.action.value]
    ends = [instant.ended for instant in commits]
    assert len(ends) == len(changed.expected)
    for begin, end, expected in zip(["000", *ends], ends, changed.expected, strict=False):
        assert _answer(jvm_hudi, path, begin, end) == expected, end
    total = sum(changed.expected, Counter[str]())
    assert _answer(jvm_hudi, path, "000", ends[-1]) == total

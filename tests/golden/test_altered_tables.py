"""Tables whose columns ALTER TABLE of Apache Hudi has renamed, dropped and retyped take writes.

A model in plain Python has the rows of Hudi's own answer, and changes with each write.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.timeline.loading import read_commit
from tests.golden.golden_tables import assert_rows_equal, expected_rows, unzip_table

NAMES = ["v9_cow_altered", "v6_mor_altered"]
COMPACTED = {"hoodie.compact.inline.max.delta.commits": "1"}
CLUSTERED = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}


class Altered:
    """A golden table beside the rows that it must have."""

    def __init__(self, name: str, folder: Path) -> None:
        self.table = HoodieTable(str(unzip_table(name, folder)))
        self.columns = [n for n in self.table.schema.names if not n.startswith("_hoodie_")]
        self.rows = {row["id"]: self._own(row) for row in expected_rows(name)}

    def check(self) -> None:
        assert_rows_equal(self.table.read(columns=self.columns), list(self.rows.values()))

    def upsert(self, *rows: dict[str, Any]) -> None:
        schema = pa.schema([self.table.schema.field(name) for name in self.columns])
        pairs = [{**row, "prices": list(map(tuple, row["prices"]))} for row in rows]
        self.table.upsert(pa.Table.from_pylist(pairs, schema=schema))
        self.rows |= {row["id"]: row for row in rows}

    def _own(self, row: dict[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in self.columns}


@pytest.mark.parametrize("name", NAMES)
def test_writes_meet_rows_of_all_names(name: str, tmp_path: Path) -> None:
    altered = Altered(name, tmp_path)
    altered.check()
    new = {**altered.rows["k01"], "title": "new", "qty": 7, "ts": 99}
    altered.upsert(new, {**new, "id": "k20", "note": None})
    altered.check()
    altered.table.delete(where="title = 'note 3 r1'")
    del altered.rows["k03"]
    altered.check()
    altered.table.update({"note": "updated", "ts": 99}, where="note = 'name 0 r1'")
    altered.rows["k00"] |= {"note": "updated", "ts": 99}
    altered.check()
    assert altered.table.compact(COMPACTED) if "mor" in name else altered.table.cluster(CLUSTERED)
    altered.check()
    assert altered.table.inspect.verify()


@pytest.mark.parametrize("name", NAMES)
def test_a_write_says_of_the_columns_what_hudi_said(name: str, tmp_path: Path) -> None:
    altered = Altered(name, tmp_path)
    storage, commits = LocalStorage(str(tmp_path / name)), altered.table.timeline.commits
    altered.upsert({**altered.rows["k01"], "ts": 99})
    theirs, ours = (
        read_commit(storage, i) for i in (commits[-1], altered.table.timeline.commits[-1])
    )
    assert json.loads(ours.extra["latest_schema"]) == json.loads(theirs.extra["latest_schema"])
    histories = sorted((tmp_path / name / ".hoodie/.schema").glob("*.schemacommit"))
    assert json.loads(histories[-1].read_bytes()) == json.loads(histories[-2].read_bytes())

"""Random reads of random tables have the rows that Hudi itself finds there, filtered one by one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests import random_reads
from tests.interop.jvm_hudi import JvmHudi
from tests.interop.test_jvm_metadata_table import METADATA
from tests.random_reads import RULES, RandomTable, shown
from tests.rows import assert_same_rows
from tests.tiers import AT_NIGHT

pytestmark = pytest.mark.jvm

SEEDS = [seed for seed in range(12) if RULES[seed % 4].endswith("ORDERING")]
"""Hudi knows nothing of hooks, and reads blocks of some columns as whole rows."""
OTHER = ("update", "rename", "drop")


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=AT_NIGHT) for seed in SEEDS])
def test_answers_are_those_of_the_rows_of_hudi(
    jvm_hudi: JvmHudi, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {what: often for what, often in random_reads.CHANGES.items() if what not in OTHER}
    monkeypatch.setattr(random_reads, "CHANGES", known)
    made = RandomTable(tmp_path / "t", seed)
    for _ in range(3):
        for _ in range(3):
            made.change()
        theirs = jvm_hudi.read(made.path, {METADATA: "false"})
        assert_same_rows(theirs, made.table.read())
        rows = theirs.select(made.schema.names).cast(made.schema).to_pylist()
        for _ in range(4):
            query = made.query(rows)
            columns = query.columns or made.schema.names
            for _ in range(2):  # the second time what log files replace is known
                asked = pa.table(made.table.scan(columns, query.filters)).to_pylist()
                assert shown(asked, columns) == query.of(rows), query
                assert made.table.count(query.filters) == len(query.of(rows)), query

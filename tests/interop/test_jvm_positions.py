"""Apache Hudi on the JVM merges log blocks of ours by the positions that they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.slices.base_rows import BaseRows
from tests.interop.jvm_hudi import JvmHudi
from tests.merge_hooks import MODE
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, found, trips

pytestmark = pytest.mark.jvm

BY_POSITIONS = {"hoodie.merge.use.record.positions": "true"}
STORED = [(f"k{number:03}", "x", 5, float(number)) for number in range(200)]


def theirs(jvm_hudi: JvmHudi, path: Path, options: dict[str, str]) -> list[tuple[object, ...]]:
    rows = jvm_hudi.read(path, options).select(["id", "city", "ts", "fare"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.parametrize(
    ("version", "mode"), [("8", "EVENT_TIME_ORDERING"), ("9", "COMMIT_TIME_ORDERING")]
)
def test_hudi_merges_our_blocks_by_positions(
    jvm_hudi: JvmHudi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    mode: str,
) -> None:
    """It shows that it does by a block whose positions are those of other rows."""
    options = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ", VERSION: version, MODE: mode}
    table = HoodieTable(str(tmp_path), options)
    table.upsert(trips(*STORED))
    table.delete(where=[("id", ">=", "k190")])
    table.update({"fare": -1.0}, [("id", "in", ["k003", "k150", "k100"])])
    source = trips(("k003", "x", 6, 3.5), ("k004", "x", 6, None), ("k100", "x", 7, 9.5))
    merge = table.merge(source, "id").when_matched_delete("source.fare is null")
    merge.when_matched_update_all().execute()
    rows = found(table)
    assert len(rows) == 189
    assert theirs(jvm_hudi, tmp_path, BY_POSITIONS) == rows
    table.upsert(trips(("k004", "x", 8, 4.5), ("new", "x", 8, 1.0)))
    table.delete(where=[("id", "in", ["new", "k005"])])
    rows = found(table)
    assert len(rows) == 189
    assert theirs(jvm_hudi, tmp_path, BY_POSITIONS) == rows

    table.compact()
    inner = BaseRows.positions
    monkeypatch.setattr(BaseRows, "positions", lambda *given: np.add(inner(*given), 1))
    table.update({"fare": -2.0}, [("id", "=", "k003")])
    by_keys, by_positions = (theirs(jvm_hudi, tmp_path, {**BY_POSITIONS, **more}) for more in (
        {"hoodie.merge.use.record.positions": "false"}, {}
    ))  # fmt: skip
    replaced = ("k003", "x", 6, 3.5)
    assert replaced in by_positions
    assert replaced not in by_keys

"""Tables that Apache Hudi wrote, taken up as Delta: deltalake reads what we read of base files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from tests.delta import delta, ours
from tests.golden.golden_tables import golden_names, unzip_table
from tests.tiers import AT_NIGHT

NAMES = [name for name in golden_names() if "altered" not in name]
SOME, MORE = NAMES[::6], NAMES[3::6]
MARKS = {**dict.fromkeys(SOME, ()), **dict.fromkeys(MORE, (pytest.mark.slow,))}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, AT_NIGHT)) for name in NAMES]
)
def test_a_golden_table_is_taken_up(name: str, tmp_path: Path) -> None:
    path = unzip_table(name, tmp_path)
    expected = ours(path)
    synced = HoodieTable(path).sync_delta()
    assert not HoodieTable(path).sync_delta(dry=True)
    found = delta(path).to_pyarrow_table()
    assert found.num_rows == expected.num_rows
    assert synced.added == len(delta(path).file_uris())
    names = [f.name for f in expected.schema if "map" not in str(f.type)]
    assert sorted(map(str, found.select(names).to_pylist())) == sorted(
        map(str, expected.select(names).to_pylist())
    )

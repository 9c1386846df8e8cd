"""What is read of log files alone, beside base files that others read, is Hudi's answer too."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.reader.logged_rows import LoggedRows
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.slices.log_reader import LogReader
from hoodie_ds.storage.connect import open_storage
from tests.golden.golden_tables import assert_rows_equal, expected_rows, golden_names, unzip_table
from tests.golden.histories import OPTIONS, TABLES, names, steps
from tests.golden.test_merge_histories import values, write
from tests.recombined import recombined

WITH_KEYS = [name for name in golden_names() if "mor" in name and "virtual" not in name]


@pytest.mark.parametrize("name", WITH_KEYS)
def test_every_table_reads_equal(name: str, tmp_path: Path) -> None:
    assert_rows_equal(recombined(unzip_table(name, tmp_path)), expected_rows(name))


def test_bitmaps_of_rows_that_are_merged_whole_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unzip_table("v9_mor_columns_updated", tmp_path)
    pinned = PinnedTable.latest(open_storage(str(path)))
    (found,) = [slice_ for slice_ in pinned.slices() if slice_.base is not None and slice_.logs]
    logged = LoggedRows(pinned.reader())
    first = logged.replaced(found)
    assert first.any()
    monkeypatch.setattr(LogReader, "records", None)
    assert (logged.replaced(found) == first).all()


@pytest.mark.parametrize("name", names())
def test_rows_win_as_in_hudi(name: str, tmp_path: Path) -> None:
    ours = HoodieTable(str(tmp_path), {**OPTIONS, **TABLES["mor_avro"]})
    for step in steps(name):
        if "mor_avro" not in step.refused:
            write(ours, step)
        assert values(recombined(tmp_path)) == step.answers["mor_avro"]

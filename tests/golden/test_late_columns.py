"""What is read of log files that are not held in memory is Hudi's answer too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import TimelineError
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.slices.file_slice_reader import MergeCounts
from hoodie_ds.slices.late_columns import Places, rows_at
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table import fs_view
from tests.golden.golden_tables import assert_rows_equal, expected_rows, golden_names, unzip_table
from tests.golden.histories import OPTIONS, TABLES, names, steps
from tests.golden.test_merge_histories import values, write

WITH_LOGS = [name for name in golden_names() if "mor" in name]


def read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a table, none of whose log files is held."""
    pinned = PinnedTable.latest(open_storage(str(path)))
    reader = replace(pinned.reader(remembers=True), held_bytes=0)
    columns = columns or pinned.schema.names
    schema = pa.schema(map(pinned.schema.field, columns))
    parts = [rows for found in pinned.slices() for rows in reader.read(found, columns)]
    return pa.concat_tables([schema.empty_table(), *parts])


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let log files of few bytes count as large."""
    monkeypatch.setattr(fs_view, "HELD_BYTES", 0)


@pytest.mark.parametrize("name", WITH_LOGS)
def test_every_table_reads_equal(name: str, tmp_path: Path) -> None:
    path = unzip_table(name, tmp_path)
    rows, expected = read(path), expected_rows(name)
    assert_rows_equal(rows, expected)
    column = rows.column_names[-1]
    assert read(path, [column])[column].to_pylist() == rows[column].to_pylist()


@pytest.mark.parametrize("name", names())
def test_rows_win_as_in_hudi(name: str, tmp_path: Path) -> None:
    ours = HoodieTable(str(tmp_path), {**OPTIONS, **TABLES["mor_avro"]})
    for step in steps(name):
        if "mor_avro" not in step.refused:
            write(ours, step)
        assert values(read(tmp_path)) == step.answers["mor_avro"]


def test_a_block_that_has_gone_in_between_is_missed(tmp_path: Path) -> None:
    pinned = PinnedTable.latest(open_storage(str(unzip_table("v9_mor_bucket", tmp_path))))
    found = next(found for found in pinned.slices() if found.logs)
    reader = replace(pinned.reader(), held_bytes=0)
    places = Places()
    logged = reader.logged(found, reader.open_logs(found), (), MergeCounts(), places=places)
    assert logged is not None
    with pytest.raises(TimelineError, match="of the log files are gone"):
        list(rows_at(iter(()), places.of(logged[1].rows)))


def test_no_large_log_file_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: list[str] = []
    inner = LocalStorage.read

    def noted(storage: LocalStorage, name: str) -> bytes:
        whole.append(name)
        return inner(storage, name)

    path = unzip_table("v9_mor_bucket", tmp_path)
    monkeypatch.setattr(LocalStorage, "read", noted)
    assert HoodieTable(str(path)).read().num_rows
    assert whole
    assert not [name for name in whole if ".log." in name]

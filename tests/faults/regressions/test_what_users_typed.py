"""What a new user typed, and rows went where nobody looked, or a request was passed over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, OptionError, ReplayMismatchError
from hoodie_ds.config.write_options import WriteOptions

KEYED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bucket.index.num.buckets": "1",
}
ONCE = {
    "hoodie.datasource.write.streaming.checkpoint.identifier": "load",
    "hoodie.datasource.write.batch.identifier": "1",
}
ROWS = pa.table({"id": ["a", "b"], "ts": [1, 1]})


@pytest.mark.parametrize("path", ["dbfs:/x", "s3:/bucket/t", "C:\\tables\\t", "abfss:/x", "c:/t"])
def test_a_path_of_another_system_became_a_local_folder(path: str) -> None:
    with pytest.raises(OptionError, match="it would be a local folder named"):
        WriteOptions.parse({**KEYED, "path": path})


@pytest.mark.parametrize("path", ["a:b/t", "./s3:/t", "/data/x:/t", "file:/data/t"])
def test_folders_with_a_colon_stay_what_they_are(path: str) -> None:
    assert WriteOptions.parse({**KEYED, "path": path}).base_path == path


@pytest.mark.parametrize(
    ("first", "second", "keyed"),
    [
        ("insert", "overwrite", True),
        ("upsert", "delete", True),
        ("delete", "upsert", True),
        ("insert", "overwrite", False),
        ("overwrite", "insert", False),
    ],
)
def test_another_operation_under_the_same_number_was_passed_over(
    first: str, second: str, keyed: bool, tmp_path: Path
) -> None:
    table = HoodieTable(str(tmp_path / "t"), KEYED if keyed else {"hoodie.table.name": "t"})
    table.insert(ROWS)
    getattr(table, first)(ROWS, ONCE)
    before = table.read()
    with pytest.raises(ReplayMismatchError, match="came again"):
        getattr(table, second)(ROWS, ONCE)
    assert getattr(table, first)(ROWS, ONCE).already_committed
    assert table.read() == before


@pytest.mark.parametrize("options", [KEYED, {"hoodie.table.name": "t"}], ids=["keyed", "append"])
def test_an_insert_may_be_repeated_as_a_bulk_insert(
    options: dict[str, str], tmp_path: Path
) -> None:
    table = HoodieTable(str(tmp_path / "t"), options)
    table.insert(ROWS, ONCE)
    bulk = {**ONCE, "hoodie.datasource.write.operation": "bulk_insert"}
    assert table.insert(ROWS, bulk).already_committed
    assert table.read(["id"]).num_rows == 2


@pytest.mark.parametrize("key", ["primaryKey", "write.operations", "mergeSchema", "recordkey"])
def test_options_under_names_that_nothing_reads_were_passed_over(key: str, tmp_path: Path) -> None:
    place = tmp_path / "t"
    with pytest.raises(OptionError, match=key):
        HoodieTable(place, {**KEYED, key: "delete"})
    table = HoodieTable(place, KEYED)
    with pytest.raises(OptionError, match=key):
        table.upsert(ROWS, {key: "delete"})
    assert not place.exists()


def test_once_a_batch_marked_deletes_all_later_ones_had_to(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path / "t"), KEYED)
    table.upsert(ROWS)
    table.upsert(pa.table({"id": ["a"], "ts": [2], "_hoodie_is_deleted": [True]}))
    table.upsert(pa.table({"id": ["c"], "ts": [3]}))
    assert sorted(table.read(["id"])["id"].to_pylist()) == ["b", "c"]

"""What a new user typed, and rows went where nobody looked, or a request was passed over."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from hoodie_ds import (
    HoodieDataSource,
    HoodieTable,
    MissingPackageError,
    OptionError,
    ReplayMismatchError,
    SchemaError,
    StorageError,
)
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.storage.connect import open_storage

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


@pytest.mark.parametrize(
    "path",
    [
        "dbfs:/x",
        "s3:/bucket/t",
        "C:\\tables\\t",
        "abfss:/x",
        "c:/t",
        "jdbc:mysql://t",
        "my_store://t",
    ],
)
def test_a_path_of_another_system_became_a_local_folder(path: str) -> None:
    with pytest.raises(OptionError, match="it would be a local folder named"):
        WriteOptions.parse({**KEYED, "path": path})


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("ftp://host/t", "option 'hoodie.py.storage.option.host' is not set: fsspec needs it"),
        ("github://a/t", r"\(2\) option 'hoodie.py.storage.option.repo' is not set"),
        ("zip://a/t", "'path' = 'zip://a/t' is refused: chained file systems"),
        ("viewfs://ns/t", "'path' = 'viewfs://ns/t' is refused: .* hdfs://nameservice/folder"),
        ("cos://bucket/t", "option 'path' = 'cos://...' is refused: no file system; give"),
    ],
)
def test_a_url_gave_an_error_of_fsspec(path: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        HoodieTable(path).read()


@pytest.mark.parametrize("path", ["a:b/t", "./s3:/t", "/data/x:/t", "file:/data/t"])
def test_folders_with_a_colon_are_local_paths(path: str) -> None:
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


@pytest.mark.parametrize("path", [None, 5, b"/tmp/t"])
def test_a_path_that_is_no_string_was_a_type_error(path: str) -> None:
    with pytest.raises(OptionError, match="give the table's folder"):
        HoodieTable(path, KEYED)


def test_a_lazy_frame_must_be_collected(tmp_path: Path) -> None:
    class LazyFrame:
        pass

    with pytest.raises(SchemaError, match=r"give rows\.collect\(\)"):
        HoodieTable(tmp_path / "t", KEYED).upsert(LazyFrame())


def test_once_a_batch_marked_deletes_all_later_ones_had_to(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path / "t"), KEYED)
    table.upsert(ROWS)
    table.upsert(pa.table({"id": ["a"], "ts": [2], "_hoodie_is_deleted": [True]}))
    table.upsert(pa.table({"id": ["c"], "ts": [3]}))
    assert sorted(table.read(["id"])["id"].to_pylist()) == ["b", "c"]


OPERATION = "hoodie.datasource.write.operation"
CITIES = pa.table({"id": ["a", "b"], "ts": [1, 1], "city": ["oslo", "rome"]})
BY_CITY = {**KEYED, "hoodie.datasource.write.partitionpath.field": "city"}


@pytest.mark.parametrize("where", ["table", "call"])
@pytest.mark.parametrize(
    ("said", "method"),
    [
        ("upsert", "delete"),
        ("upsert", "overwrite"),
        ("upsert", "delete_partitions"),
        ("insert_overwrite_table", "delete_partitions"),
        ("insert_overwrite", "overwrite"),
        ("delete", "upsert"),
        ("delete_partition", "upsert"),
        ("insert", "upsert"),
        ("insert", "delete"),
        ("bulk_insert", "upsert"),
    ],
)
def test_the_option_operation_replaced_the_called_method(
    said: str, method: str, where: str, tmp_path: Path
) -> None:
    HoodieTable(tmp_path / "t", BY_CITY).upsert(CITIES)
    more = {OPERATION: said}
    table = HoodieTable(tmp_path / "t", {**BY_CITY, **(more if where == "table" else {})})
    before = table.read()
    of_call = more if where == "call" else None
    what = "oslo" if method == "delete_partitions" else CITIES.slice(0, 1)
    with pytest.raises(OptionError, match=f"'{said}' is refused: the called function does "):
        getattr(table, method)(what, of_call)
    assert table.read() == before


@pytest.mark.parametrize(
    ("said", "method", "left"),
    [
        ("upsert", "upsert", ["a", "b"]),
        ("insert", "insert", ["a", "a", "b"]),
        ("bulk_insert", "insert", ["a", "a", "b"]),
        ("delete", "delete", ["b"]),
        ("insert_overwrite_table", "overwrite", ["a"]),
        ("delete_partition", "delete_partitions", ["b"]),
    ],
)
def test_the_option_operation_may_say_what_the_method_does(
    said: str, method: str, left: list[str], tmp_path: Path
) -> None:
    HoodieTable(tmp_path / "t", BY_CITY).upsert(CITIES)
    table = HoodieTable(tmp_path / "t", {**BY_CITY, OPERATION: said})
    getattr(table, method)("oslo" if method == "delete_partitions" else CITIES.slice(0, 1))
    assert sorted(table.read(["id"])["id"].to_pylist()) == left


@pytest.mark.parametrize("key", [OPERATION, "write.operation"])
def test_rows_to_be_deleted_took_the_place_of_the_table(key: str, tmp_path: Path) -> None:
    table = HoodieTable(tmp_path / "t", KEYED)
    table.upsert(ROWS)
    source = HoodieDataSource({**KEYED, "path": str(tmp_path / "t"), key: "delete"})
    columns = StructType().add("id", "string").add("ts", "long")
    with pytest.raises(OptionError, match=r"'delete' is refused: mode 'overwrite' .* 'append'"):
        source.writer(columns, overwrite=True)
    assert len(table.timeline.commits) == 1
    source.writer(columns, overwrite=False).abort([])
    assert table.read().num_rows == 2


def test_the_path_of_a_table_takes_the_place_of_the_option(tmp_path: Path) -> None:
    options = {**KEYED, "path": str(tmp_path / "other")}
    HoodieTable(tmp_path / "t", options).upsert(ROWS)
    assert HoodieTable(tmp_path / "t").read().num_rows == 2
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("startingVersion", "hoodie.datasource.streaming.startOffset"),
        ("readChangeFeed", "hoodie.datasource.query.incremental.format=cdc"),
        ("snapshot-id", "as.of.instant"),
        ("as-of-timestamp", "as.of.instant"),
    ],
)
def test_an_option_of_delta_or_iceberg_gave_the_latest_rows(key: str, remedy: str) -> None:
    for is_stream in (True, False, None):
        with pytest.raises(OptionError, match=remedy) as refused:
            ReadOptions.parse({"path": "/tmp/t", key.lower(): "1"}, is_stream=is_stream)
        assert key.lower() in str(refused.value)


def test_hudis_glue_sync_class_was_ignored() -> None:
    glue = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"
    tool = {"hoodie.meta.sync.client.tool.class": glue}
    given = {**KEYED, **tool, "path": "/tmp/t", "hoodie.datasource.hive_sync.enable": "true"}
    with pytest.raises(OptionError, match=r"hive_sync\.mode=glue"):
        WriteOptions.parse(given)
    WriteOptions.parse({**given, "hoodie.datasource.hive_sync.mode": "glue"})
    WriteOptions.parse({**KEYED, **tool, "path": "/tmp/t"})


def test_rows_without_a_field_name_its_role(tmp_path: Path) -> None:
    other = {**KEYED, "hoodie.datasource.write.recordkey.field": "nr"}
    with pytest.raises(SchemaError, match=r"^record key field 'nr' does not exist"):
        HoodieTable(tmp_path / "new", other).upsert(ROWS)
    HoodieTable(tmp_path / "t", KEYED).upsert(ROWS)
    with pytest.raises(SchemaError, match=r"^ordering field 'ts' .*every write needs .* ts$"):
        HoodieTable(tmp_path / "t").upsert(ROWS.select(["id"]))


@pytest.mark.parametrize(
    ("place", "options", "key", "remedy"),
    [
        ("s3://b/t", {"nonsense": "hush"}, "nonsense", "no 'nonsense' for s3://"),
        ("s3://b/t", {"client_kwargs": '{"x": "hush"}'}, "client_kwargs", "no 'x' for s3://"),
        ("s3a://b/t", {"config_kwargs": '{"x": "hush"}'}, "config_kwargs", "no 'x' for s3a://"),
        ("s3://b/t", {"config_kwargs": "{hush"}, "config_kwargs", "a JSON object"),
        ("gs://b/t", {"key": "hush"}, "key", "GCSStore of obstore knows no such option"),
        ("az://b/t", {"key": "hush"}, "key", "AzureStore of obstore knows no such option"),
        ("gs://b/t", {"timeout": "soon"}, "timeout", "give a duration"),
        ("hdfs://n/t", {"kerberos_key": "hush"}, "kerberos_key", "a name of Hadoop's"),
    ],
)
def test_an_unknown_storage_option_was_a_type_error_or_ignored(
    place: str, options: dict[str, str], key: str, remedy: str
) -> None:
    storage = open_storage(place, options)
    with pytest.raises(OptionError, match=re.escape(remedy)) as caught:
        storage.read("f")
    assert caught.value.key == f"hoodie.py.storage.option.{key}"
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "name"),
    [("wasbs://c@a.blob.core.windows.net/t", "abfss://"), ("s3n://b/t", "s3a://")],
)
def test_a_former_scheme_of_hadoop_was_only_unknown(place: str, name: str) -> None:
    with pytest.raises(OptionError, match=name):
        open_storage(place)


def test_an_endpoint_that_is_no_url_was_a_panic_that_nobody_caught() -> None:
    storage = open_storage("gs://b/t", {"base_url": "nonsense", "bearer_token": "hush"})
    with pytest.raises(StorageError, match="RuntimeError: request must be valid") as caught:
        storage.read("f")
    assert "hush" not in str(caught.value)


def test_unequal_as_sql_writes_it_was_less_than_a_text(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path / "t"), KEYED)
    table.insert(ROWS)
    table.delete(where="id <> 'a'")
    assert table.read(["id"]).to_pydict() == {"id": ["a"]}
    assert table.read(["id"], filter=("id", "<>", "b")).num_rows == 1
    with pytest.raises(OptionError, match="> 'a' is not one value"):
        table.delete(where="id => 'a'")


def test_to_pandas_did_not_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match="to_pandas needs pandas: pip install pandas"):
        HoodieTable(tmp_path).to_pandas()

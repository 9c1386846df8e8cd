"""Metadata tables of Apache Hudi on the JVM that this library has compacted."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.metadata_table.compaction import compact_if_due
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.table.table import Table, open_table
from tests.golden.test_metadata_compaction import FOLDER
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.rows import assert_same_rows
from tests.tables import TYPE

pytestmark = pytest.mark.jvm

METADATA = "hoodie.metadata.enable"
SKIPPING = {METADATA: "true", "hoodie.enable.data.skipping": "true"}
TABLES = ["v6_mor_files_ri__logs", "v9_mor_files_cs_ps_ri__logs"]


@pytest.mark.parametrize("name", TABLES)
def test_hudi_reads_and_continues_it(
    jvm_hudi: JvmHudi, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie_ds.metadata_table.compaction._DELTA_COMMITS", 1)
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    table = open_table(open_storage(str(tmp_path)))
    metadata = MetadataTable.open(table, table.load_timeline())
    assert metadata is not None
    assert compact_if_due(metadata)
    rows = HoodieTable(str(tmp_path)).read()
    agree(jvm_hudi, tmp_path, name)
    columns = [field for field in rows.column_names if not field.startswith("_hoodie")]
    for _ in range(3):
        jvm_hudi.write(tmp_path, rows.select(columns).slice(0, 2), continuing(table))
        agree(jvm_hudi, tmp_path, name)


def continuing(table: Table) -> dict[str, str]:
    """Options of a writer on the JVM that compacts the metadata table as well."""
    properties = table.properties
    return {
        "hoodie.datasource.write.recordkey.field": ",".join(properties.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(properties.partition_fields),
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.table.ordering.fields": ",".join(properties.ordering_fields),
        TABLE_VERSION: str(properties.version),
        TYPE: "MERGE_ON_READ",
        METADATA: "true",
        "hoodie.metadata.compact.max.delta.commits": "2",
        "hoodie.compact.inline": "false",
    }


def agree(jvm: JvmHudi, path: Path, name: str) -> None:
    ours = HoodieTable(str(path)).read()
    assert_same_rows(jvm.read(path, SKIPPING), ours)
    assert_same_rows(jvm.read(path, {METADATA: "false"}), ours)
    table = f"compacted_{name}"
    jvm.sql(f"create table if not exists {table} using hudi location '{path}'")
    differing = jvm.sql(f"call validate_metadata_table_files(table => '{table}')")
    assert differing.to_pylist() == []

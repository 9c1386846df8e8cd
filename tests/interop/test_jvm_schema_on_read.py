"""Columns that Apache Hudi on the JVM renames, drops and retypes without a new data file."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import UnsupportedTableError
from tests.interop.jvm_hudi import JvmHudi
from tests.tables import TRIPS, TYPE, TYPES, VERSION, found, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

COW, MOR = TYPES
OPTION = "hoodie.schema.on.read.enable"
SETTINGS = {
    OPTION: "true",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
WRONG_BY_NAME = (
    "rename column fare to cost",
    "drop column fare",
    "alter column fare type string",
)
RIGHT_BY_NAME = ("add columns (extra string)", "alter column fare after id")
NEW = trips(("1", "x", 9, 9.0))


@pytest.mark.parametrize(
    ("change", "kind", "version"),
    by_day(
        product((*WRONG_BY_NAME, *RIGHT_BY_NAME), TYPES, "69"),
        {
            (WRONG_BY_NAME[0], COW, "9"),
            (WRONG_BY_NAME[1], MOR, "6"),
            (WRONG_BY_NAME[2], COW, "6"),
            (RIGHT_BY_NAME[0], MOR, "9"),
            (RIGHT_BY_NAME[1], COW, "9"),
        },
    ),
)
def test_what_names_do_not_tell_is_refused(
    jvm_hudi: JvmHudi, tmp_path: Path, change: str, kind: str, version: str
) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, VERSION: version})
    table.upsert(trips(("1", "x", 1, 1.0), ("2", "x", 1, 2.0)))
    name = f"altered_{abs(hash(tmp_path))}"
    for key, value in {**SETTINGS, VERSION: version}.items():
        jvm_hudi.sql(f"set {key}={value}")
    try:
        jvm_hudi.sql(f"create table {name} using hudi location '{tmp_path}'")
        jvm_hudi.sql(f"alter table {name} {change}")
        after_the_change(table, change)
        jvm_hudi.sql(f"update {name} set ts = ts where id = '2'")
        after_the_change(table, change)
    finally:
        jvm_hudi.sql(f"drop table if exists {name}")
        for key in (*SETTINGS, VERSION):
            jvm_hudi.sql(f"reset {key}")


def after_the_change(table: HoodieTable, change: str) -> None:
    with pytest.raises(UnsupportedTableError, match=OPTION):
        table.upsert(NEW)
    if change in RIGHT_BY_NAME:
        assert found(table) == [("1", "x", 1, 1.0), ("2", "x", 1, 2.0)]
        assert table.inspect.verify()
    else:
        with pytest.raises(UnsupportedTableError, match=OPTION):
            table.read()
        assert not table.inspect.verify()

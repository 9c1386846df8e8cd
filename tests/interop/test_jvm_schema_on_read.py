"""Columns that Apache Hudi on the JVM renames, drops and retypes without a new data file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from tests.golden.golden_tables import assert_rows_equal, notation
from tests.interop.jvm_hudi import JvmHudi
from tests.tables import TRIPS, TYPE, TYPES, VERSION, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

COW, MOR = TYPES
OPTION = "hoodie.schema.on.read.enable"
SETTINGS = {
    OPTION: "true",
    "hoodie.metadata.enable": "false",
    "spark.sql.parquet.enableVectorizedReader": "false",  # fails where fields of structs change
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
CHANGES = (
    "rename column fare to cost",
    "drop column fare",
    "alter column fare type string",
    "add columns (extra string)",
    "alter column fare after id",
)


@contextmanager
def schema_on_read(jvm_hudi: JvmHudi, version: str, name: str) -> Iterator[str]:
    """Let Hudi alter tables of a version; afterwards one of a name is not known any more."""
    for key, value in {**SETTINGS, VERSION: version}.items():
        jvm_hudi.sql(f"set {key}={value}")
    try:
        yield name
    finally:
        jvm_hudi.sql(f"drop table if exists {name}")
        for key in (*SETTINGS, VERSION):
            jvm_hudi.sql(f"reset {key}")


@pytest.mark.parametrize(
    ("change", "kind", "version"),
    by_day(
        product(CHANGES, TYPES, "69"),
        {
            (CHANGES[0], COW, "9"),
            (CHANGES[1], MOR, "6"),
            (CHANGES[2], COW, "6"),
            (CHANGES[3], MOR, "9"),
            (CHANGES[4], COW, "9"),
        },
    ),
)
def test_every_change_is_read_as_hudi_does(
    jvm_hudi: JvmHudi, tmp_path: Path, change: str, kind: str, version: str
) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, VERSION: version})
    table.upsert(trips(("1", "x", 1, 1.0), ("2", "x", 1, 2.0)))
    with schema_on_read(jvm_hudi, version, f"altered_{abs(hash(tmp_path))}") as name:
        jvm_hudi.sql(f"create table {name} using hudi location '{tmp_path}'")
        jvm_hudi.sql(f"alter table {name} {change}")
        after_the_change(jvm_hudi, table, tmp_path)
        jvm_hudi.sql(f"update {name} set ts = ts where id = '2'")
        after_the_change(jvm_hudi, table, tmp_path)


def after_the_change(jvm_hudi: JvmHudi, table: HoodieTable, path: Path) -> None:
    theirs = jvm_hudi.read(path, {OPTION: "true"}).to_pylist()
    assert_rows_equal(table.read(), notation(theirs))
    assert table.inspect.verify()


FIRST = ("rename column fare to cost", "drop column ts2", "alter column n type bigint")
SECOND = ("rename column n to fare", "add columns (ts2 string)", "rename column cost to n")


@pytest.mark.parametrize(
    ("kind", "version"), by_day(product(TYPES, "689"), {(COW, "6"), (MOR, "9")})
)
def test_hudi_and_we_write_in_turns(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    """Each meets rows that the other wrote under other names, and keeps the numbers."""
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, VERSION: version})
    table.upsert(wide(range(6), fare=1.0, ts2="first", n=1))
    with schema_on_read(jvm_hudi, version, f"in_turns_{abs(hash(tmp_path))}") as name:
        jvm_hudi.sql(f"create table {name} using hudi location '{tmp_path}'")
        for changes in (FIRST, SECOND):
            for change in changes:
                jvm_hudi.sql(f"alter table {name} {change}")
            after_the_change(jvm_hudi, table, tmp_path)
            rows = table.read(columns=[n for n in table.schema.names if n[0] != "_"])
            table.upsert(rows.filter(pc.field("id").isin(["0", "1"])))
            table.delete(where="id = '2'")
            after_the_change(jvm_hudi, table, tmp_path)
            jvm_hudi.sql(f"update {name} set ts = ts + 1 where id in ('1', '3')")
            after_the_change(jvm_hudi, table, tmp_path)
        if kind == MOR:  # Hudi may have compacted what there was
            table.update({"ts": 9}, where="id = '5'")
            assert table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
            after_the_change(jvm_hudi, table, tmp_path)
        jvm_hudi.sql(f"update {name} set fare = fare + 1 where id = '4'")
        after_the_change(jvm_hudi, table, tmp_path)


@pytest.mark.parametrize(
    ("kind", "version"), by_day(product(TYPES, "689"), {(COW, "6"), (MOR, "9")})
)
def test_hudi_goes_on_with_what_we_altered(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    """The first alteration is ours, then both alter and write in turns."""
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, VERSION: version})
    table.upsert(wide(range(6), fare=1.0, ts2="first", n=1))
    with schema_on_read(jvm_hudi, version, f"altered_by_us_{abs(hash(tmp_path))}") as name:
        change = table.alter().rename("fare", "cost").drop("ts2").retype("n", pa.int64())
        change.add("ts2", pa.struct({"x": pa.int32()}), after="id").execute()
        after_the_change(jvm_hudi, table, tmp_path)
        jvm_hudi.sql(f"create table {name} using hudi location '{tmp_path}'")
        jvm_hudi.sql(f"update {name} set ts = ts + 1, n = 7 where id = '1'")
        after_the_change(jvm_hudi, table, tmp_path)
        jvm_hudi.sql(f"alter table {name} rename column cost to fare")
        after_the_change(jvm_hudi, table, tmp_path)
        table.alter().rename("ts2.x", "y").rename("n", "cost").move("cost", first=True).execute()
        table.delete(where="id = '2'")
        after_the_change(jvm_hudi, table, tmp_path)
        if kind == MOR:
            assert table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
            after_the_change(jvm_hudi, table, tmp_path)


def wide(numbers: Iterable[int], **values: object) -> pa.Table:
    """Rows with more columns to change."""
    rows = trips(*((str(number), "x", 1, 0.0) for number in numbers)).to_pylist()
    kinds = {"fare": pa.float64(), "ts2": pa.string(), "n": pa.int32()}
    schema = pa.schema({"id": pa.string(), "city": pa.string(), "ts": pa.int64(), **kinds})
    return pa.Table.from_pylist([{**row, **values} for row in rows], schema=schema)

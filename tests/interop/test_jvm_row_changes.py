"""Rows that the same statements change here and in the SQL of Apache Hudi on the JVM."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, TableMerge, expr
from tests.interop.jvm_hudi import JvmHudi
from tests.tables import BUCKETS, ORDERING, TRIPS, TYPE, TYPES, VERSION, found, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

COW, MOR = TYPES
# With a bucket index Hudi takes rows for matched whose bucket has a file group in such a table.
LOOKED_UP = {name: value for name, value in TRIPS.items() if name != BUCKETS}
LOOKED_UP["hoodie.index.type"] = "BLOOM"
KINDS = ("ordered", "unordered", "partial")
NULL_KEEPS = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
ROWS = trips(
    ("a", "x", 1, 1.0), ("b", "x", 2, None), ("c", "x", 3, 3.0), ("d", "y", 1, 4.0),
    ("e", "y", 2, 5.0), ("f", "y", 3, None), ("g", "z", 1, 7.0), ("h", "z", 2, float("nan")),
)  # fmt: skip
NEWS = trips(
    ("a", "x", 5, 10.0), ("b", "x", 1, 20.0), ("c", "x", 4, None), ("d", "y", 1, 40.0),
    ("g", "z", 9, 7.0), ("n", "z", 1, 80.0), ("o", "w", 1, None), ("p", "w", 1, 90.0),
).append_column("op", pa.array([None, "u", "u", "u", "d", "i", "i", "d"]))  # fmt: skip


@contextmanager
def copies(
    jvm_hudi: JvmHudi, path: Path, options: Mapping[str, str]
) -> Iterator[tuple[HoodieTable, HoodieTable, str]]:
    """A table, a copy of it, and the name of the copy in the SQL of the JVM."""
    ours = HoodieTable(path / "ours", options)
    ours.upsert(ROWS)
    shutil.copytree(path / "ours", path / "theirs")
    name = f"changed_{abs(hash(path))}"
    settings = {VERSION: options[VERSION], "hoodie.metadata.enable": "false"}
    for key, value in settings.items():
        jvm_hudi.sql(f"set {key}={value}")
    try:
        jvm_hudi.sql(f"create table {name} using hudi location '{path / 'theirs'}'")
        yield ours, HoodieTable(path / "theirs"), name
    finally:
        jvm_hudi.sql(f"drop table if exists {name}")
        for key in settings:
            jvm_hudi.sql(f"reset {key}")


def same(jvm_hudi: JvmHudi, path: Path, ours: HoodieTable) -> None:
    """Whether each reads of either table what the other has."""
    names = ["id", "city", "ts", "fare"]
    told = [jvm_hudi.read(path / name).select(names).to_pylist() for name in ("theirs", "ours")]
    theirs, again = (sorted(map(str, (tuple(row.values()) for row in rows))) for rows in told)
    assert [*map(str, found(ours))] == theirs == again
    assert [*map(str, found(HoodieTable(path / "theirs")))] == theirs


@pytest.mark.parametrize(
    ("kind", "version"), by_day(product(TYPES, "69"), {(COW, "9"), (MOR, "6")})
)
def test_deletes_and_updates(jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str) -> None:
    """What is computed of a null is null; a condition on it is not true; NaN is the greatest."""
    with copies(jvm_hudi, tmp_path, {**TRIPS, TYPE: kind, VERSION: version}) as (ours, _, name):
        jvm_hudi.sql(f"update {name} set fare = fare * 1.5, ts = ts + 1 where city = 'x'")
        ours.update({"fare": expr("fare * 1.5"), "ts": expr("ts + 1")}, "city = x")
        same(jvm_hudi, tmp_path, ours)
        text = "case when fare > 4 then null when fare is null then ts / 2 else fare end"
        jvm_hudi.sql(f"update {name} set fare = {text}, ts = ts + 1")
        ours.update({"fare": expr(text), "ts": expr("ts + 1")})
        same(jvm_hudi, tmp_path, ours)
        jvm_hudi.sql(f"delete from {name} where fare != 1.5 and city in ('x', 'y')")
        assert ours.delete(where=["fare != 1.5", ("city", "in", ["x", "y"])]).deleted == 1
        same(jvm_hudi, tmp_path, ours)


MERGE = """
merge into {name} t using news s on t.id = s.id and t.city = s.city
when matched and s.op = 'd' then delete
when matched and s.fare != {other} then update set {keys}, fare = {fare}, ts = s.ts
when matched and s.fare is null then update set {keys}, fare = s.fare, ts = s.ts
when not matched and s.op != 'd' then insert (id, city, ts, fare)
  values (s.id, s.city, s.ts, s.fare)
"""


def merged(merge: TableMerge, fare: str, other: str) -> TableMerge:
    merge.when_matched_delete("source.op = d")
    both = {"fare": expr(fare), "ts": "source.ts"}
    merge.when_matched_update(both, f"source.fare != {other}")
    merge.when_matched_update({"fare": "source.fare", "ts": "source.ts"}, "source.fare is null")
    return merge.when_not_matched_insert_all("source.op != d")


@pytest.mark.parametrize(
    ("kind", "version", "more"),
    by_day(
        # Hudi's MERGE INTO sets nulls in copy-on-write tables of version 9 with partial updates
        sorted({*product(TYPES, "69", KINDS)} - {(COW, "9", "partial")}),
        {(COW, "6", "ordered"), (MOR, "9", "partial"), (COW, "9", "unordered")},
    ),
)
def test_merges(jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str, more: str) -> None:
    """A row whose ordering value would become lower stays; partial updates keep what is null."""
    options = {**LOOKED_UP, TYPE: kind, VERSION: version}
    if more == "unordered":
        del options[ORDERING]
    if more == "partial":
        options |= NULL_KEEPS
    with copies(jvm_hudi, tmp_path, options) as (ours, _, name):
        given(jvm_hudi, NEWS)
        # in merge-on-read tables Hudi knows no values of the table's row
        other = "7" if kind == MOR else "target.fare"
        fare, told = f"source.fare + {other}", other.replace("target.", "t.")
        # and in version 6 columns that an update does not name become null
        keys = "id = s.id, city = s.city"
        jvm_hudi.sql(MERGE.format(name=name, keys=keys, fare=f"s.fare + {told}", other=told))
        merged(ours.merge(NEWS, ["id", "city"]), fare, other).execute()
        same(jvm_hudi, tmp_path, ours)


@pytest.mark.parametrize(("kind", "version"), by_day(product(TYPES, "69"), {(MOR, "9")}))
def test_hudi_updates_before_it_deletes(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    """Whatever the order of the clauses; here the first takes the row, as in SQL elsewhere."""
    rows = NEWS.slice(0, 5)
    update = "update set id = s.id, fare = 0.0, ts = s.ts"
    options = {**LOOKED_UP, TYPE: kind, VERSION: version}
    with copies(jvm_hudi, tmp_path, options) as (ours, theirs, name):
        given(jvm_hudi, rows)
        joined = f"merge into {name} t using news s on t.id = s.id and t.city = s.city"
        jvm_hudi.sql(f"{joined} when matched and s.fare > 6 then delete when matched then {update}")
        merge = ours.merge(rows, ["id", "city"]).when_matched_delete("source.fare > 6")
        merge.when_matched_update({"fare": 0.0, "ts": "source.ts"}).execute()
        mine, hudis = ({row[0] for row in found(table)} for table in (ours, theirs))
        assert hudis - mine == {"a", "b", "d", "g"}


def given(jvm_hudi: JvmHudi, rows: pa.Table) -> None:
    """Make rows the view `news`."""
    values = ", ".join(
        "(" + ", ".join("null" if value is None else repr(value) for value in row.values()) + ")"
        for row in rows.to_pylist()
    )
    columns = "id, city, cast(ts as bigint) ts, cast(fare as double) fare, op"
    query = f"select {columns} from values {values} as v(id, city, ts, fare, op)"
    jvm_hudi.sql(f"create or replace temporary view news as {query}")

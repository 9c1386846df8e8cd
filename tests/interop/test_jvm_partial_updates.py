"""Tables with a mode of partial updates beside Apache Hudi on the JVM."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError
from tests.tables import ORDERING, TRIPS, TYPE, TYPES
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

COW, MOR = TYPES

MODE = "hoodie.table.partial.update.mode"
UNKNOWN = "__debezium_unavailable_value"
JVM_ONLY = {"hoodie.index.type": "BUCKET", "hoodie.compact.inline": "false"}
VERSION = "hoodie.write.table.version"
Row = tuple[str, int, float | None, str | None]


def rows(*values: Row) -> pa.Table:
    kinds = {"id": pa.string(), "ts": pa.int64(), "fare": pa.float64(), "note": pa.string()}
    dicts = [dict(zip(kinds, value, strict=True)) for value in values]
    table = pa.Table.from_pylist(dicts, schema=pa.schema(kinds))
    return table.append_column("city", pa.repeat("x", len(values)))


def content(table: pa.Table) -> list[Row]:
    return sorted((r["id"], r["ts"], r["fare"], r["note"]) for r in table.to_pylist())


def _all_read(jvm_hudi: JvmHudi, path: Path, expected: list[Row]) -> None:
    """Whether all readers answer this; hudi-rs, which fills nothing, where no log file has to."""
    table = HoodieTable(str(path))
    assert content(table.read()) == content(jvm_hudi.read(path)) == expected
    if table.properties.table_type == MOR:
        path = shutil.copytree(path, path.with_name(f"{path.name} {len(table.timeline.commits)}"))
        assert HoodieTable(str(path)).compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert content(read_with_hudi_rs(path)) == expected


STORED = rows(("a", 1, 1.0, "one"), ("b", 2, None, "two"), ("c", 2, 3.0, "three"))
CHANGES = rows(("a", 2, None, UNKNOWN), ("b", 1, 2.0, "late"), ("c", 3, 4.0, None))
LATER = rows(("a", 3, 9.0, None), ("c", 4, None, "four"))


@pytest.mark.parametrize(
    ("kind", "by_event_time", "version"),
    by_day(
        product(TYPES, (True, False), "689"),
        {(COW, True, "6"), (MOR, False, "8"), (COW, False, "9"), (MOR, True, "9")},
    ),
)
def test_both_fill_nulls_alike(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, by_event_time: bool, version: str
) -> None:
    options = {key: value for key, value in TRIPS.items() if by_event_time or key != ORDERING}
    options |= {TYPE: kind, VERSION: version}
    table = HoodieTable(str(tmp_path), {**options, MODE: "IGNORE_DEFAULTS"})
    table.upsert(STORED)
    table.upsert(CHANGES)
    b: Row = ("b", 2, 2.0, "two") if by_event_time else ("b", 1, 2.0, "late")
    expected = [("a", 2, 1.0, UNKNOWN), b, ("c", 3, 4.0, "three")]
    _all_read(jvm_hudi, tmp_path, expected)
    jvm_hudi.write(tmp_path, LATER, {**options, **JVM_ONLY})
    expected = [("a", 3, 9.0, UNKNOWN), b, ("c", 4, 4.0, "four")]
    _all_read(jvm_hudi, tmp_path, expected)
    table.upsert(rows(("a", 4, None, "five"), ("c", 5, 6.0, None)))
    expected = [("a", 4, 9.0, "five"), b, ("c", 5, 6.0, "four")]
    _all_read(jvm_hudi, tmp_path, expected)


@pytest.mark.parametrize("kind", TYPES)
def test_a_row_that_an_older_update_leaves_keeps_its_commit_in_both(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str
) -> None:
    """In version 9; of version 6 the JVM puts its commit on all rows.

    A value that is filled is a change to a copy-on-write table of the JVM's, and to both of ours.
    """
    options = {**TRIPS, TYPE: kind, VERSION: "9"}

    def written_by(path: Path, write: Callable[[pa.Table], object]) -> tuple[str, HoodieTable]:
        table = HoodieTable(str(path), {**options, MODE: "IGNORE_DEFAULTS"})
        table.upsert(rows(("a", 2, 1.0, "one"), ("b", 2, 1.0, "one"), ("c", 2, None, "one")))
        first = table.timeline.commits[0].time
        write(rows(("a", 1, 2.0, "late"), ("b", 3, 2.0, "new"), ("c", 1, 2.0, "late")))
        return first, HoodieTable(str(path))

    def kept(found: pa.Table, first: str) -> set[str]:
        return {row["id"] for row in found.to_pylist() if row["_hoodie_commit_time"] == first}

    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    table = HoodieTable(str(ours), options)
    by_jvm = lambda late: jvm_hudi.write(theirs, late, {**options, **JVM_ONLY})  # noqa: E731
    for path, write in ((ours, table.upsert), (theirs, by_jvm)):
        first, written = written_by(path, write)
        assert kept(written.read(), first) == {"a"}
        assert kept(jvm_hudi.read(path), first) == ({"a"} if kind == COW else {"a", "c"})
        assert content(written.read()) == content(jvm_hudi.read(path))


@pytest.mark.parametrize(
    ("kind", "version"), by_day(product(TYPES, "68"), {(MOR, "6"), (COW, "8")})
)
def test_of_a_null_and_a_value_the_later_row_is_newer(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    """Elsewhere a null is lower than any value; here the JVM has an answer, and it is another.

    In version 9 it has none: it fails.
    """
    options = {**TRIPS, TYPE: kind, VERSION: version}
    table = HoodieTable(str(tmp_path), {**options, MODE: "IGNORE_DEFAULTS"})
    nulls = rows(("a", 5, None, "one"), ("b", 0, 1.0, None), ("c", 0, 7.0, "x"))
    nulls = nulls.set_column(1, "ts", pa.array([5, None, None]))
    table.upsert(nulls)
    later = rows(("a", 0, 2.0, "late"), ("b", -3, None, "new"), ("c", 0, None, "tie"))
    later = later.set_column(1, "ts", pa.array([None, -3, None]))
    jvm_hudi.write(tmp_path, later, {**options, **JVM_ONLY})
    expected = [("a", 5, 2.0, "late"), ("b", -3, 1.0, "new"), ("c", None, 7.0, "tie")]
    assert content(table.read()) == content(jvm_hudi.read(tmp_path)) == expected


@pytest.mark.parametrize(
    ("kind", "by_event_time"),
    by_day(product(TYPES, (True, False)), {(COW, True), (MOR, False)}),
)
def test_both_fill_what_is_unavailable_in_version_9(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, by_event_time: bool
) -> None:
    options = {key: value for key, value in TRIPS.items() if by_event_time or key != ORDERING}
    options |= {TYPE: kind, VERSION: "9"}
    table = HoodieTable(str(tmp_path), {**options, MODE: "FILL_UNAVAILABLE"})
    table.upsert(STORED)
    table.upsert(CHANGES)
    b: Row = ("b", 2, None, "two") if by_event_time else ("b", 1, 2.0, "late")
    expected = [("a", 2, None, "one"), b, ("c", 3, 4.0, None)]
    _all_read(jvm_hudi, tmp_path, expected)
    jvm_hudi.write(tmp_path, rows(("c", 4, None, UNKNOWN)), {**options, **JVM_ONLY})
    expected = [*expected[:2], ("c", 4, None, None)]
    _all_read(jvm_hudi, tmp_path, expected)
    table.upsert(rows(("a", 5, 7.0, UNKNOWN)))
    expected = [("a", 5, 7.0, "one"), *expected[1:]]
    _all_read(jvm_hudi, tmp_path, expected)


@pytest.mark.parametrize(
    ("kind", "version"), by_day(product(TYPES, "68"), {(COW, "6"), (MOR, "8")})
)
def test_the_jvm_does_not_merge_what_it_cannot_fill(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    options = {**TRIPS, TYPE: kind, VERSION: version}
    table = HoodieTable(str(tmp_path), {**options, MODE: "FILL_UNAVAILABLE"})
    table.upsert(STORED)
    table.upsert(CHANGES)
    expected = [("a", 2, None, "one"), ("b", 2, None, "two"), ("c", 3, 4.0, None)]
    assert content(table.read()) == expected
    if kind == "COPY_ON_WRITE":
        assert content(jvm_hudi.read(tmp_path)) == expected
    else:
        with pytest.raises(JvmHudiError, match="FillUnavailable"):
            jvm_hudi.read(tmp_path)
    with pytest.raises(JvmHudiError, match="FillUnavailable"):
        jvm_hudi.write(tmp_path, LATER, {**options, **JVM_ONLY})
    assert content(table.read()) == expected

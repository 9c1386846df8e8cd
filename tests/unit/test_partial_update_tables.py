"""Tables of partial updates, as Hudi's payload classes name them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import OptionError
from tests.merge_hooks import HOOK
from tests.tables import BUCKETS, ORDERING, TRIPS, TYPE, TYPES

PAYLOAD = "hoodie.datasource.write.payload.class"
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
NON_DEFAULTS = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"


def rows(*values: tuple[str, int, float | None, str | None]) -> pa.Table:
    kinds = {"id": pa.string(), "ts": pa.int64(), "fare": pa.float64(), "note": pa.string()}
    dicts = [dict(zip(kinds, value, strict=True)) for value in values]
    table = pa.Table.from_pylist(dicts, schema=pa.schema(kinds))
    return table.append_column("city", pa.repeat("x", len(values)))


def content(table: HoodieTable) -> list[tuple[object, ...]]:
    found = table.read(columns=["id", "ts", "fare", "note"]).sort_by("id").to_pylist()
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize("kind", TYPES)
def test_what_a_row_lacks_comes_from_the_one_with_the_lower_ordering_value(
    tmp_path: Path, kind: str
) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, PAYLOAD: PARTIAL})
    table.upsert(rows(("a", 1, 1.0, "one"), ("b", 2, None, "two"), ("c", 1, 3.0, None)))
    table.upsert(rows(("a", 2, 2.0, None), ("b", 1, 2.0, "late"), ("c", 2, None, "x")))
    assert content(table) == [("a", 2, 2.0, "one"), ("b", 2, 2.0, "two"), ("c", 2, 3.0, "x")]
    # Neither reader nor writer needs an option: the rule is this library's own.
    other = HoodieTable(str(tmp_path))
    other.upsert(rows(("a", 3, None, "p"), ("a", 4, 5.0, None), ("d", 1, None, None)))
    assert content(other)[0] == ("a", 4, 5.0, "p")
    assert content(other)[-1] == ("d", 1, None, None)


@pytest.mark.parametrize("kind", TYPES)
def test_by_commit_order_the_later_row_is_filled(tmp_path: Path, kind: str) -> None:
    options = {key: TRIPS[key] for key in TRIPS if key != ORDERING}
    table = HoodieTable(str(tmp_path), {**options, TYPE: kind, PAYLOAD: NON_DEFAULTS})
    table.upsert(rows(("a", 2, 1.0, "one"), ("b", 2, 1.0, "one")))
    table.upsert(rows(("a", 1, None, "late")))
    table.delete(pa.table({"id": ["b"], "city": ["x"]}))
    table.upsert(rows(("b", 1, None, "new")))
    assert content(table) == [("a", 1, 1.0, "late"), ("b", 1, None, "new")]


@pytest.mark.parametrize("index", ["BUCKET", "BLOOM", "GLOBAL_BLOOM"])
def test_an_insert_that_folds_its_rows_fills_them(tmp_path: Path, index: str) -> None:
    options = {key: TRIPS[key] for key in TRIPS if key != BUCKETS or index == "BUCKET"}
    options |= {PAYLOAD: PARTIAL, "hoodie.index.type": index}
    table = HoodieTable(str(tmp_path), options)
    table.insert(
        rows(("a", 1, 7.0, "one"), ("a", 2, None, "two"), ("b", 1, None, None)),
        {"hoodie.combine.before.insert": "true"},
    )
    assert content(table) == [("a", 2, 7.0, "two"), ("b", 1, None, None)]


def test_what_the_table_says_of_its_merge(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, PAYLOAD: PARTIAL})
    table.upsert(rows(("a", 1, 1.0, "one")))
    raw = table.properties.raw
    assert raw["hoodie.compaction.payload.class"] == PARTIAL
    assert raw["hoodie.table.precombine.field"] == "ts"
    assert raw["hoodie.compaction.record.merger.strategy"].startswith("00000000-")
    assert HOOK not in raw


@pytest.mark.parametrize(
    ("options", "key"),
    [({PAYLOAD: NON_DEFAULTS}, PAYLOAD), ({HOOK: "tests.merge_hooks:add"}, HOOK)],
)
def test_another_rule_contradicts_the_table(
    tmp_path: Path, options: dict[str, str], key: str
) -> None:
    HoodieTable(str(tmp_path), {**TRIPS, PAYLOAD: PARTIAL}).upsert(rows(("a", 1, 1.0, "one")))
    with pytest.raises(OptionError, match="PartialUpdateAvroPayload") as caught:
        HoodieTable(str(tmp_path), options).upsert(rows(("a", 1, 1.0, "one")))
    assert caught.value.key == key

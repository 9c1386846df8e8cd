"""A filter means the same in each language and at each door."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import Filter, HoodieTable
from hoodie_ds.datasource.spark_filter import MatchingRows
from hoodie_ds.errors import OptionError
from hoodie_ds.filters import given as door_of_filters
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.filters.predicate import UNKNOWN
from tests.cli_runs import done
from tests.tables import TRIPS, trips

F = pc.field
ROWS = (("a", "oslo", 1, 9.5), ("b", "rome", 2, 3.0), ("c", None, 3, 3.0), ("d", "oslo", 4, 1.0))
SAME: list[tuple[list[Filter | None], str]] = [
    (["city = oslo", ("city", "=", "oslo"), F("city") == "oslo"], "ad"),
    (["city != 'oslo'", ("city", "!=", "oslo"), F("city") != "oslo"], "b"),
    (["fare >= 3", ("fare", ">=", 3), F("fare") >= 3], "abc"),
    ([("id", "in", ["a", "c"]), F("id").isin(["a", "c"])], "ac"),
    (["city is null", F("city").is_null()], "c"),
    (
        [
            ["city = oslo", "fare > 2"],
            [("city", "=", "oslo"), ["fare", ">", 2]],
            (("city", "=", "oslo"), ("fare", ">", 2)),
            ["city = oslo", ("fare", ">", 2)],
            ["city = oslo", F("fare") > 2],
            {"city = oslo", "fare > 2"},
            (F("city") == "oslo") & (F("fare") > 2),
        ],
        "a",
    ),
    ([[], (), None], "abcd"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("t") / "t"
    HoodieTable(found, TRIPS).upsert(trips(*ROWS))
    return found


@pytest.fixture
def table(path: Path) -> HoodieTable:
    return HoodieTable(path)


def inspected(table: HoodieTable, given: Any) -> pa.Table:
    return pa.concat_tables([table.read().slice(0, 0), *table.inspect.rows(None, given)])


DOORS: list[Callable[[HoodieTable, Any], pa.Table]] = [
    lambda table, given: table.read(filter=given),
    lambda table, given: table.scan(filter=given).to_table(),
    lambda table, given: pa.Table.from_pandas(table.to_pandas(filter=given)),
    lambda table, given: table.read_incremental("000", filter=given),
    inspected,
]


def ids(rows: pa.Table) -> str:
    return "".join(sorted(rows["id"].to_pylist()))


@pytest.mark.parametrize(("filters", "expected"), SAME, ids=[expected for _, expected in SAME])
def test_a_filter_finds_the_same_rows_in_each_language(
    table: HoodieTable, filters: list[Filter | None], expected: str
) -> None:
    for given in filters:
        for door in DOORS:
            assert ids(door(table, given)) == expected, given
        assert table.count(given) == len(expected)
        assert ids(table.read(filter=predicate_of(given, table.inspect.schema()))) == expected


@pytest.mark.parametrize(
    ("where", "expected"), [(["city = oslo"], "ad"), (["city = oslo", "fare > 2", "id = a"], "a")]
)
def test_the_command_line_takes_strings(path: Path, where: list[str], expected: str) -> None:
    arguments = [argument for text in where for argument in ("--where", text)]
    rows = done("read", path, "--json", *arguments).json
    assert sorted(row["id"] for row in rows) == sorted(expected)


@pytest.mark.parametrize("given", [F("fare") > 2, [F("fare") > 2, "city = oslo"]])
def test_a_worker_of_spark_compares_in_the_types_of_the_table(given: Filter) -> None:
    """Spark's columns of other types are those that it reads the table's as."""
    schema = pa.schema({"id": pa.string(), "city": pa.string(), "fare": pa.float32()})
    of_spark = pa.schema({"id": pa.string(), "city": pa.string(), "fare": pa.float64()})
    rows = pa.record_batch([["a", "b"], ["oslo", "oslo"], [9.5, 1.5]], schema=of_spark)
    matching = pickle.loads(pickle.dumps(MatchingRows(predicate_of(given, schema), schema)))
    found = pa.Table.from_batches(matching(iter([rows])))
    assert found.schema == of_spark
    assert found["id"].to_pylist() == ["a"]


WRONG = [
    (5, "'filter' = '5' is refused: give a string such as"),
    (b"city = oslo", "is refused: give a string such as"),
    ({"city": "oslo"}, "is refused: give a string such as"),
    ([5], "'filter' = '5' is refused: give a string such as"),
    ("city oslo", "'filter' = 'city oslo' is refused: write COLUMN = VALUE"),
    ("", "'filter' = '' is refused: write COLUMN = VALUE"),
    (["city", "=", "oslo"], "'filter' = 'city' is refused: write COLUMN = VALUE"),
    (("city = oslo", "fare > 2"), 'give a tuple such as ("city", "=", "oslo"), and several'),
    (
        ("city = oslo", "fare > 2", "id = a"),
        "is refused: city = oslo is no column; there are _hoodie",
    ),
    (("city",), 'give a tuple such as ("city", "=", "oslo"), and several'),
    ([("city", "oslo")], 'give a tuple such as ("city", "=", "oslo"), and several'),
    # An alternative in pyarrow.parquet, so it must not be read as "and".
    ([[("city", "=", "oslo")], [("city", "=", "rome")]], "give a tuple such as"),
    (("nothing", "=", 1), "nothing is no column; there are _hoodie_commit_time"),
    (("city", "~", "oslo"), "the operators are =, ==, <, <=, !="),
    (("city", "is null", None), 'not in; of nulls write "city is null"'),
    (("city", "=", None), 'nothing is equal to null; give "city is null"'),
    (("city", "in", "oslo"), "give a list of values"),
    (("ts", "<", 2.5), "give values that the column's type holds exactly; there are "),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=lambda case: str(case)[:40])
def test_what_is_no_filter_is_refused(table: HoodieTable, given: Any, said: str) -> None:
    for door in (*DOORS, HoodieTable.count):
        with pytest.raises(OptionError, match=re.escape(said)) as caught:
            door(table, given)
        assert caught.value.key == "filter"


def test_the_door_names_the_parameter_that_was_given(table: HoodieTable) -> None:
    with pytest.raises(OptionError, match="'filters' = 'city'"):
        predicate_of("city", table.schema, "filters")


def test_a_source_that_leaves_a_part_unknown_never_lets_more_rows_pass(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(door_of_filters._SOURCES, bytearray, lambda *_: UNKNOWN)
    for inexact in (False, True):
        with pytest.raises(OptionError, match="holds exactly"):
            predicate_of(bytearray(b"x"), table.schema, inexact=inexact)

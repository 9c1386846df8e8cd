"""A text where several are meant, and texts that hold what separates others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import OptionError
from hoodie_ds.testing import MemoryStorage
from tests.faults.schedules import Actor, Phase, explore
from tests.tables import TRIPS, trips

NAMES = ("berlin", "bern", "b", "smith, john", "smith", "john", " lead", "lead", "a*c", "abc", "*")


def partitions(table: HoodieTable) -> set[str]:
    return set(table.read(["city"])["city"].to_pylist())


@pytest.fixture
def table() -> HoodieTable:
    table = HoodieTable("memory://t", TRIPS, storage=MemoryStorage())
    table.upsert(trips(*((str(number), name, 1, 1.0) for number, name in enumerate(NAMES))))
    return table


@pytest.mark.parametrize("name", [name for name in NAMES if "*" not in name])
def test_a_partition_was_deleted_by_the_parts_of_its_name(table: HoodieTable, name: str) -> None:
    table.delete_partitions([name])
    assert partitions(table) == set(NAMES) - {name}


@pytest.mark.parametrize(
    ("pattern", "gone"),
    [
        ("ber*", {"berlin", "bern"}),
        ("berlin", {"berlin"}),
        ("smith, *", {"smith, john"}),
        ("a*c", {"a*c", "abc"}),
    ],
)
def test_the_characters_of_a_string_were_taken_for_partitions(
    table: HoodieTable, pattern: str, gone: set[str]
) -> None:
    table.delete_partitions(pattern)
    assert partitions(table) == set(NAMES) - gone


@pytest.mark.parametrize("name", ["a*c", "*"])
def test_a_star_may_be_escaped(table: HoodieTable, name: str) -> None:
    table.delete_partitions([name], exact=True)
    assert partitions(table) == set(NAMES) - {name}


def test_the_option_of_a_table_does_not_add_to_the_partitions_named() -> None:
    options = {**TRIPS, "hoodie.datasource.write.partitions.to.delete": "y"}
    table = HoodieTable("memory://t", options, storage=MemoryStorage())
    table.upsert(trips(("1", "x", 1, 1.0), ("2", "y", 1, 1.0)))
    table.delete_partitions(["x"])
    assert partitions(table) == {"y"}


@pytest.mark.parametrize("wrong", [[], (), [None], [1], [b"x"], 7, None])
def test_a_pattern_without_partitions_is_refused(table: HoodieTable, wrong: object) -> None:
    with pytest.raises(OptionError, match="'partitions'"):
        table.delete_partitions(wrong)  # type: ignore[arg-type]
    assert partitions(table) == set(NAMES)


def test_the_characters_of_a_string_were_taken_for_columns(table: HoodieTable) -> None:
    assert table.read(columns="fare").column_names == ["fare"]
    assert table.read(columns=(name for name in ("ts", "id"))).column_names == ["ts", "id"]
    with pytest.raises(OptionError, match="'columns'"):
        table.read(columns=[pa.field("id", pa.string())])


def test_the_characters_of_a_string_were_taken_for_schedules() -> None:
    actors = [Actor(name, lambda storage, wait: None, (Phase("all"),)) for name in "ab"]
    for orders in ("ab", ["ab"]):
        assert explore(MemoryStorage, actors, lambda left, raised: None, orders) == 1

"""Which variants of a test a run of one in so many leaves out."""

from __future__ import annotations

from typing import cast

import pytest

from tests.tiers import beyond


class Item:
    """As much of a collected test as is looked at."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid = nodeid
        self._marks = marks

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self._marks else None


def _variants(test: str, count: int, *marks: str) -> list[pytest.Item]:
    items = [Item(f"{test}[{i}]", *marks) for i in range(count)]
    return cast("list[pytest.Item]", items)


def _kept(items: list[pytest.Item], one_in: int) -> list[str]:
    left_out = beyond(items, one_in)
    return [item.nodeid for item in items if item.nodeid not in left_out]


@pytest.mark.parametrize(("count", "at_least"), [(1, 1), (2, 1), (3, 1), (9, 3), (10, 3)])
def test_one_in_so_many_is_kept(count: int, at_least: int) -> None:
    kept = _kept(_variants("tests/integration/test_a.py::test_it", count), 3)
    assert at_least <= len(kept) <= at_least + 1
    assert kept == _kept(_variants("tests/integration/test_a.py::test_it", count), 3)


def test_one_in_one_is_all() -> None:
    assert beyond(_variants("tests/integration/test_a.py::test_it", 5, "slow"), 1) == set()


def test_tests_differ_in_what_is_kept() -> None:
    kept = set[str]()
    for name in range(30):
        kept |= {n[-3:] for n in _kept(_variants(f"tests/spark/test_a.py::test_{name}", 3), 3)}
    assert kept == {"[0]", "[1]", "[2]"}


def test_of_quick_tests_of_protocols_all_are_kept() -> None:
    test = "tests/model/test_a.py::test_it"
    assert len(_kept(_variants(test, 9), 3)) == 9
    assert len(_kept(_variants(test, 9, "slow"), 3)) == 3

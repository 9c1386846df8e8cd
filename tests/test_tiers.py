"""Which variants of a test a run of one in so many leaves out."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.tiers import beyond


class Item:
    """As much of a collected test as is looked at."""

    def __init__(self, nodeid: str, *marks: str, fixturenames: tuple[str, ...] = ()) -> None:
        self.nodeid = nodeid
        self.fixturenames = fixturenames
        self._marks = marks

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self._marks else None


def _variants(test: str, count: int, *marks: str, **more: Any) -> list[pytest.Item]:
    items = [Item(f"{test}[{i}]", *marks, **more) for i in range(count)]
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


@pytest.mark.parametrize("folder", ["unit/sink", "model"])
def test_what_takes_no_time_is_kept(folder: str) -> None:
    test = f"tests/{folder}/test_a.py::test_it"
    assert len(_kept(_variants(test, 9), 3)) == 9
    assert len(_kept(_variants(test, 9, "slow"), 3)) == 3
    assert len(_kept(_variants(test, 9, "jvm"), 3)) == 3
    assert len(_kept(_variants(test, 9, fixturenames=("tmp_path",)), 3)) == 3

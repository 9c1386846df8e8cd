"""Which of many variants of a test CI runs; the others are for the night before a release."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")

_UNLIKE = "tests/model/"
"""Where the variants of a test are no variants of one thing, but protocols."""

AT_NIGHT = (pytest.mark.slow, pytest.mark.nightly)


def by_day(variants: Iterable[T], chosen: Collection[T]) -> list[ParameterSet]:
    """Mark all variants but the chosen ones as nightly.

    Parameters
    ----------
    variants : iterable
        Values of a test's parameter, or tuples of several.
    chosen : collection
        Those that CI runs too: together they have each of what the test varies.
    """
    every = list(variants)
    assert set(chosen) <= set(every), "a chosen variant is none of the test's"
    return [_parameters(value, () if value in chosen else AT_NIGHT) for value in every]


def in_turn(
    names: Iterable[str],
    versions: Sequence[str],
    first: int = 0,
    every: int = 1,
    at_night: Collection[str] = (),
) -> list[ParameterSet]:
    """Take each name with all versions; by day with one, and the next two names with another.

    Parameters
    ----------
    names : iterable of str
        Two names that follow one another may be of one thing in tables of both types.
    versions : sequence of str
        Table versions.
    first : int
        Where in them the first name begins.
    every : int
        One in so many names is taken by day.
    at_night : collection of str
        Names that are not taken by day: they take long, and others are much like them.
    """
    found = list(names)
    by_name = [(n, versions[(i + i // 2 + first) % len(versions)]) for i, n in enumerate(found)]
    chosen = [(name, version) for name, version in by_name[::every] if name not in at_night]
    return by_day(product(found, versions), chosen)


def beyond(items: Iterable[pytest.Item], one_in: int) -> set[str]:
    """Return the node ids of the variants that a run of one in so many leaves out.

    Each test keeps one variant at least. Which one differs from test to test, so that tests with
    the same versions and table types have all of them together, and is the same in every run.
    """
    variants: dict[str, list[str]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") or not item.nodeid.startswith(_UNLIKE):
            variants[item.nodeid.partition("[")[0]].append(item.nodeid)
    left_out: set[str] = set()
    for test, found in variants.items():
        first = zlib.crc32(test.encode()) % min(one_in, len(found))
        left_out |= {*found} - {*found[first::one_in]}
    return left_out


def _parameters(value: object, marks: Collection[pytest.MarkDecorator]) -> ParameterSet:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=marks)

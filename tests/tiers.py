"""Which of many variants of a test CI runs; the others are for the night before a release."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")

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


def _parameters(value: object, marks: Collection[pytest.MarkDecorator]) -> ParameterSet:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=marks)

"""Damaged and forged files: right rows or an error that names the file, fast and in bounds."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import pytest

from hoodie_ds.errors import HoodieError
from hoodie_ds.testing import one_thread
from tests.hostile.format import must_name
from tests.hostile.formats import FORMATS
from tests.hostile.limits import within_limits
from tests.hostile.seeds import Seed
from tests.tally import tally

QUICK = 25
SMALL = (
    "Avro container",
    "data block",
    "bloom filter",
    "HFile",
    "hashing config",
    "pinned timeline",
)
"""Formats whose inputs take a millisecond, as no table is read or written."""
NIGHTLY = 15_000


@lru_cache
def seeds_of(name: str) -> tuple[Sequence[Seed], Sequence[bytes]]:
    """Files of a format, and their contents alone."""
    found = FORMATS[name].seeds()
    return found, [seed.data for seed in found]


def damaged_input(name: str, number: int) -> tuple[Seed, bytes]:
    """An input: the same for the same format and number, in every run."""
    found, contents = seeds_of(name)
    rng = random.Random(zlib.crc32(f"{name} {number}".encode()))
    seed = rng.choice(found)
    return seed, FORMATS[name].mutate(rng, seed, contents)


def try_input(name: str, number: int) -> bool:
    """Whether an input was refused; what fails says how to try it again."""
    seed, data = damaged_input(name, number)
    form = FORMATS[name]
    refused = False
    try:
        with one_thread(), within_limits():
            try:
                form.read(seed, data)
            except HoodieError as error:
                refused = True
                named = form.named_by or seed.path.rpartition("/")[2]
                must_name(error, named)
    except Exception as error:
        again = f"from tests.hostile.test_malformed import try_input; try_input({name!r}, {number})"
        raise AssertionError(f"{type(error).__name__}: {error}; again: {again}") from error
    return refused


def inputs_of(name: str) -> int:
    """How many inputs of a format are tried."""
    return 600 if name in SMALL else 120


def try_inputs(name: str, start: int, stop: int) -> int:
    outcomes = Counter(try_input(name, number) for number in range(start, stop))
    # Damage that no reader noticed would prove nothing.
    assert not FORMATS[name].is_refused or outcomes[True] > (stop - start) // 20, outcomes
    return sum(outcomes.values())


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_damaged_was_whole(name: str) -> None:
    found, _ = seeds_of(name)
    assert found
    with one_thread():
        for seed in found:
            if name != "marker" and not name.startswith("instant name"):
                FORMATS[name].read(seed, seed.data)


@pytest.mark.parametrize("name", FORMATS)
def test_some_inputs(name: str) -> None:
    try_inputs(name, 0, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_thousands_of_inputs(name: str) -> None:
    tally("malformed files", try_inputs(name, 0, inputs_of(name)))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", FORMATS)
def test_very_many_inputs(name: str) -> None:
    try_inputs(name, inputs_of(name), NIGHTLY)


@pytest.mark.parametrize("name", FORMATS)
def test_a_number_gives_the_same_input_again(name: str) -> None:
    assert damaged_input(name, 7)[1] == damaged_input(name, 7)[1]

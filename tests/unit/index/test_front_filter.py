"""The filter in front of the state: it lets every stored key pass, and few others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.index.front_filter import FrontFilter
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.stored_keys import KeyQuery, KeySource, SliceKeys
from hoodie_ds.table.file_slice import FileGroupId, FileSlice

SLICES = 40
ROWS = 50


def place(number: int, as_of: str = "") -> KeySource:
    return KeySource("/t", FileSlice(FileGroupId("p", str(number)), "1", None, ()), as_of)


def keys(number: int, word: str = "key") -> pa.Array:
    return pa.array([f"{word} {number} {row}" for row in range(ROWS)])


def query(*parts: pa.Array) -> KeyQuery:
    return KeyQuery.of(pa.concat_arrays(parts))[0]


def held(numbers: range, as_of: str = "") -> dict[KeySource, SliceKeys]:
    return {place(n, as_of): SliceKeys.of(keys(n), keys(n, "dead")) for n in numbers}


STORED = query(*(keys(n, word) for n in range(SLICES) for word in ("key", "dead")))
NEW = query(*(keys(n, "new") for n in range(SLICES)))


def test_stored_and_deleted_keys_pass_and_few_new_ones() -> None:
    front = FrontFilter()
    every = held(range(SLICES))
    meant, may = front.ask(every, STORED.hashes)
    assert meant == every.keys()
    assert may.all()
    assert front.ask(every, NEW.hashes)[1].mean() < 0.05


def test_few_slices_are_searched_without_the_filter() -> None:
    meant, may = FrontFilter().ask(held(range(5)), NEW.hashes)
    assert not meant
    assert may.all()


def test_few_keys_are_searched_without_filling_the_filter() -> None:
    front, every = FrontFilter(), held(range(SLICES))
    assert not front.ask(every, NEW.hashes[:50])[0]
    assert front.ask(every, NEW.hashes)[0]
    assert front.ask(every, NEW.hashes[:50])[0] == every.keys()


def test_a_full_filter_is_rebuilt_from_stored_keys() -> None:
    front = FrontFilter()
    for moment in range(8):  # each time all slices are others
        every = held(range(SLICES), str(moment))
        meant, may = front.ask(every, STORED.hashes)
        assert meant == every.keys()
        assert may.all()
    first = FrontFilter()
    first.ask(every, STORED.hashes)
    assert front.nbytes == first.nbytes


@pytest.mark.parametrize("room", [1, 20, 1000])
def test_the_filter_counts_as_memory_of_the_state(room: int) -> None:
    every = held(range(SLICES))
    largest = room * next(iter(every.values())).nbytes
    cache = KeyCache(largest)
    for where, stored in every.items():
        cache.put(where, stored)
    meant, _ = cache.ask_front(every, STORED)
    kept = [found for where in every if (found := cache.get(where)) is not None]
    assert sum(found.nbytes for found in kept) + cache.front_bytes <= largest
    assert (len(meant) == SLICES) is (room == 1000)

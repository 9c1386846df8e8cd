"""The cache of record keys: bounded, by slice and moment, the last used kept longest."""

from __future__ import annotations

import pyarrow as pa

from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.stored_keys import KeySource, SliceKeys
from hoodie_ds.table.file_slice import FileGroupId, FileSlice

KEYS = SliceKeys.of(pa.array(["a" * 100]))


def place(name: str, as_of: str = "", root: str = "/t") -> KeySource:
    return KeySource(root, FileSlice(FileGroupId("p", name), "1", None, ()), as_of)


def test_the_least_recently_used_slice_is_evicted_first() -> None:
    cache = KeyCache(3 * KEYS.nbytes)
    for name in "abc":
        cache.put(place(name), KEYS)
    assert cache.get(place("a")) is not None
    cache.put(place("d"), KEYS)
    assert [name for name in "abcd" if cache.get(place(name)) is not None] == ["a", "c", "d"]


def test_a_slice_put_again_counts_once() -> None:
    cache = KeyCache(2 * KEYS.nbytes)
    for name in "aaab":
        cache.put(place(name), KEYS)
    assert cache.get(place("a")) is not None
    assert cache.get(place("b")) is not None


def test_keys_are_cached_by_table_and_instant() -> None:
    cache = KeyCache(10 * KEYS.nbytes)
    cache.put(place("a", "2025"), KEYS)
    assert cache.get(place("a", "2026")) is None
    assert cache.get(place("a", "2025", "/u")) is None
    assert cache.get(place("a", "2025")) is KEYS


def test_a_slice_larger_than_the_cache_is_not_kept() -> None:
    cache = KeyCache(KEYS.nbytes - 1)
    cache.put(place("a"), KEYS)
    assert cache.get(place("a")) is None

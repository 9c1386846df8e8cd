"""Finding keys among those of a slice: exact under every hash, cheap under a good one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.columns.java_hash import string_hashes
from hoodie_ds.index import stored_keys
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.stored_keys import KeyQuery, KeySource, SliceKeys, StoredKeys
from hoodie_ds.table.file_slice import FileGroupId, FileSlice

Hash = Callable[[pa.Array], npt.NDArray[np.uint32]]

# Short texts over few letters, "Aa" and "BB" among them, which share Java's hash.
KEYS = st.lists(st.text("AaBé\U0001f600", max_size=4), unique=True, max_size=40)


def constant(number: int) -> Hash:
    return lambda keys: np.full(len(keys), number, np.uint32)


def by_length(keys: pa.Array) -> npt.NDArray[np.uint32]:
    return np.array([len(key) for key in keys.to_pylist()], np.uint32)


def by_first_letter(keys: pa.Array) -> npt.NDArray[np.uint32]:
    return np.array([ord((key or "\uffff")[0]) << 11 for key in keys.to_pylist()], np.uint32)


@pytest.mark.parametrize(
    "weak", [string_hashes, constant(0), constant(2**32 - 1), by_length, by_first_letter]
)
@given(stored=KEYS, asked=KEYS)
def test_lookups_are_exact_with_any_hash(weak: Hash, stored: list[str], asked: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_keys, "string_hashes", weak)
        query, order = KeyQuery.of(pa.array(asked, pa.string()))
        keys = StoredKeys(pa.array(stored, pa.string()))
        expected = [key in set(stored) for key in np.array(asked, object)[order]]
        assert keys.search(query).tolist() == expected
        assert keys.scan(query).tolist() == expected
        odd = np.arange(1, len(asked), 2)
        assert keys.search(query.only(odd)).tolist() == [expected[i] for i in odd]


def test_a_constant_hash_costs_no_more_than_a_scan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every key against every key would be 10**10 comparisons."""
    monkeypatch.setattr(stored_keys, "string_hashes", constant(7))
    keys = pa.array([f"{i}" for i in range(100_000)])
    query, _ = KeyQuery.of(keys)
    assert StoredKeys(keys).search(query).all()


def test_a_second_lookup_does_not_scan_all_stored_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = StoredKeys(pa.array([f"k{i}" for i in range(10_000)]))
    query, order = KeyQuery.of(pa.array(["k1", "x", "k9999", "k10000"]))
    first = keys.search(query)
    compared: list[int] = []
    equal = pc.equal

    def counting(left: pa.Array, right: pa.Array) -> Any:
        compared.append(len(left))
        return equal(left, right)

    def never(*_: Any) -> None:
        raise AssertionError("the stored keys were scanned, or hashed again")

    monkeypatch.setattr(pc, "equal", counting)
    for name in ("_are_in", "string_hashes"):
        monkeypatch.setattr(stored_keys, name, never)
    assert keys.search(query).tolist() == first.tolist()
    assert first[np.argsort(order)].tolist() == [True, False, True, False]
    assert compared == [2]


def test_the_bound_counts_keys_and_hashes() -> None:
    keys = StoredKeys(pa.array([f"k{i}" for i in range(100)]))
    before = keys.nbytes
    keys.search(KeyQuery.of(pa.array(["k1"]))[0])
    assert keys.nbytes == before == keys.keys.nbytes + keys._by_hash.nbytes
    cache = KeyCache(before - 1)
    place = KeySource("/t", FileSlice(FileGroupId("p", "f"), "1", None, ()), "")
    cache.put(place, SliceKeys(keys, StoredKeys(keys.keys.slice(0, 0))))
    assert cache.get(place) is None

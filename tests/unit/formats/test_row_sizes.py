from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.formats.row_sizes import cut

TEXTS = ["x" * (7 * i % 90) for i in range(200)]
SOME = [None if i % 7 == 3 else value for i, value in enumerate(TEXTS)]
LISTS = [None if i % 5 == 2 else SOME[i : i + i % 4] for i in range(200)]
FIXED = pa.array(
    [None if i % 5 == 2 else SOME[i : i + 2] for i in range(199)] + [["a", "b"]],
    pa.list_(pa.string(), 2),
)
COLUMNS = {
    "string": pa.array(SOME),
    "large_string": pa.array(SOME, pa.large_string()),
    "string_view": pa.array(SOME, pa.string_view()),
    "binary": pa.array(SOME, pa.binary()),
    "large_binary": pa.array(SOME, pa.large_binary()),
    "binary_view": pa.array(SOME, pa.binary_view()),
    "dictionary": pa.array(SOME).dictionary_encode(),
    "list": pa.array(LISTS),
    "large_list": pa.array(LISTS, pa.large_list(pa.string())),
    "list_view": pa.array(LISTS, pa.list_view(pa.string())),
    "large_list_view": pa.array(LISTS, pa.large_list_view(pa.string())),
    "fixed_size_list": FIXED,
    "struct": pa.StructArray.from_arrays([pa.array(SOME), pa.array(range(200))], ["a", "b"]),
    "map": pa.array(
        [[(str(i), t)] if t else None for i, t in enumerate(SOME)],
        pa.map_(pa.string(), pa.string()),
    ),
    "null": pa.nulls(200),
    "number": pa.array(range(200)),
    "mark": pa.array([True] * 200),
}


def text_bytes(value: object) -> int:
    """Bytes of all text in a value, by its Python form."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, dict):
        return sum(map(text_bytes, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(text_bytes, value))
    return 0


@pytest.mark.parametrize("start", [0, 13])
@pytest.mark.parametrize("name", COLUMNS)
def test_parts_are_small_and_make_the_whole(name: str, start: int) -> None:
    batch = pa.RecordBatch.from_arrays([COLUMNS[name].slice(start)], ["c"])
    most = 4000
    parts = list(cut(batch, most))
    assert pa.Table.from_batches(parts).to_pylist() == batch.to_pylist()
    texts = [text_bytes(part.to_pylist()) for part in parts]
    assert max(texts) <= most
    total = text_bytes(batch.to_pylist())
    # Numbers, offsets and marks count too, but parts are not cut smaller than needed.
    assert len(parts) <= 1 + 2 * (total + 16 * batch.num_rows) // most
    assert total < most or len(parts) > 1


def test_a_row_that_is_too_long_is_a_part_of_its_own() -> None:
    batch = pa.record_batch({"c": ["a", "b" * 50, "c"]})
    assert [part.num_rows for part in cut(batch, 10)] == [1, 1, 1]


def test_decoded_values_are_counted() -> None:
    """A dictionary of one text that a hundred rows have."""
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 100), pa.array(["x" * 100]))
    assert len(list(cut(pa.record_batch({"c": repeated}), 5000))) == 2
    short = pa.array(["x"] * 100)
    assert [part.num_rows for part in cut(pa.record_batch({"c": short}), 5000)] == [100]


@pytest.mark.parametrize("name", COLUMNS)
def test_no_rows(name: str) -> None:
    batch = pa.RecordBatch.from_arrays([COLUMNS[name].slice(0, 0)], ["c"])
    assert sum(part.num_rows for part in cut(batch, 0)) == 0

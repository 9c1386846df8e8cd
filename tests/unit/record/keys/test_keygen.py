"""Keys and paths; the vectors marked JVM were printed by Hudi 1.2.0's key generators."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.errors import OptionError, RecordKeyError, SchemaError
from hoodie_ds.record.keys.keygen import KeyGenerator, KeySpec

SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP, CUSTOM = KeyGeneratorType
TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
DEFAULT = "__HIVE_DEFAULT_PARTITION__"
ROWS = pa.table(
    {
        "a": ["k", "", None, "a,b:c"],
        "b": pa.array([1, 2, 3, 4], pa.int32()),
        "p": ["x:y", None, "", "="],
        "ts": [1700000000, None, 5, 5],
        "s": pa.array([{"n": "in", "m": 5}, {"n": None, "m": 6}, {"n": "", "m": 7}, {"m": 8}]),
    }
)


def generator(
    kind: KeyGeneratorType, keys: tuple[str, ...], fields: tuple[str, ...] = (), **more: Any
) -> KeyGenerator:
    return KeyGenerator.of(KeySpec(kind, keys, fields, timestamp_options=TIMES, **more))


@pytest.mark.parametrize(
    ("kind", "keys", "fields", "expected"),
    [
        (SIMPLE, ("b",), ("p",), ["1", "2", "3", "4"]),
        (SIMPLE, ("s.m",), ("p",), ["5", "6", "7", "8"]),
        (TIMESTAMP, ("b",), ("ts",), ["1", "2", "3", "4"]),
        (NON_PARTITION, ("b",), (), ["1", "2", "3", "4"]),
        (CUSTOM, ("b",), ("p:SIMPLE",), ["1", "2", "3", "4"]),
        (COMPLEX, ("b",), ("p",), ["b:1", "b:2", "b:3", "b:4"]),
    ],
)
def test_single_keys_of_the_jvm(
    kind: KeyGeneratorType, keys: tuple[str, ...], fields: tuple[str, ...], expected: list[str]
) -> None:
    assert generator(kind, keys, fields).record_keys(ROWS).to_pylist() == expected


@pytest.mark.parametrize(
    ("kind", "fields"), [(COMPLEX, ("p", "b")), (NON_PARTITION, ()), (CUSTOM, ("p:SIMPLE",))]
)
def test_several_keys_of_the_jvm(kind: KeyGeneratorType, fields: tuple[str, ...]) -> None:
    expected = ["a:k,b:1", "a:__empty__,b:2", "a:__null__,b:3", "a:a,b:c,b:4"]
    assert generator(kind, ("a", "b"), fields).record_keys(ROWS).to_pylist() == expected


def test_nested_keys_carry_their_path() -> None:
    keys = generator(COMPLEX, ("s.n", "s.m")).record_keys(ROWS).to_pylist()
    assert keys[:3] == ["s.n:in,s.m:5", "s.n:__null__,s.m:6", "s.n:__empty__,s.m:7"]


def test_a_single_complex_key_without_its_name() -> None:
    bare = generator(COMPLEX, ("b",), ("p",), complex_key_prefixed=False)
    assert bare.record_keys(ROWS).to_pylist() == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("kind", "fields", "plain", "styled"),
    [
        (
            SIMPLE,
            ("p",),
            ["x:y", DEFAULT, DEFAULT, "="],
            ["p=x%3Ay", f"p={DEFAULT}", f"p={DEFAULT}", "p=%3D"],
        ),
        (
            COMPLEX,
            ("p", "b"),
            ["x:y/1", f"{DEFAULT}/2", f"{DEFAULT}/3", "=/4"],
            ["p=x%3Ay/b=1", f"p={DEFAULT}/b=2", f"p={DEFAULT}/b=3", "p=%3D/b=4"],
        ),
        (
            TIMESTAMP,
            ("ts",),
            ["2023/11/14", *["1970/01/01"] * 3],
            ["ts=2023%2F11%2F14", *["ts=1970%2F01%2F01"] * 3],
        ),
        (
            CUSTOM,
            ("p:simple", "ts:TIMESTAMP"),
            ["x:y/2023/11/14", f"{DEFAULT}/1970/01/01", f"{DEFAULT}/1970/01/01", "=/1970/01/01"],
            [
                "p=x%3Ay/ts=2023%2F11%2F14",
                f"p={DEFAULT}/ts=1970%2F01%2F01",
                f"p={DEFAULT}/ts=1970%2F01%2F01",
                "p=%3D/ts=1970%2F01%2F01",
            ],
        ),
        (COMPLEX, (), [""] * 4, [""] * 4),
        (CUSTOM, (), [""] * 4, [""] * 4),
        (NON_PARTITION, ("p",), [""] * 4, [""] * 4),
    ],
)
def test_partition_paths_of_the_jvm(
    kind: KeyGeneratorType, fields: tuple[str, ...], plain: list[str], styled: list[str]
) -> None:
    paths = generator(kind, ("b",), fields).partition_paths(ROWS)
    assert paths.type.value_type == pa.string()
    assert paths.to_pylist() == plain
    both = generator(kind, ("b",), fields, hive_style=True, url_encode=True)
    assert both.partition_paths(ROWS).to_pylist() == styled


def test_rows_without_a_key_are_counted_and_one_is_shown() -> None:
    with pytest.raises(RecordKeyError, match=r"2 of 4 rows.*'a' is null or empty.*row 1.*p=None"):
        generator(SIMPLE, ("a",), ("p",)).record_keys(ROWS)


def test_a_complex_key_needs_one_value_at_least() -> None:
    table = pa.table({"a": ["", "x", None], "b": [None, None, ""]})
    both = generator(COMPLEX, ("a", "b"))
    with pytest.raises(RecordKeyError, match="2 of 3 rows"):
        both.record_keys(table)
    assert both.record_keys(table.slice(1, 1)).to_pylist() == ["a:x,b:__null__"]


def test_a_hostile_partition_value_is_named() -> None:
    table = pa.table({"k": ["1"], "p": ["../../etc"]})
    with pytest.raises(RecordKeyError, match=r"'\.\./\.\./etc'"):
        generator(SIMPLE, ("k",), ("p",)).partition_paths(table)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(SchemaError, match="'nope'"):
        generator(SIMPLE, ("nope",), ("p",)).record_keys(ROWS)
    with pytest.raises(SchemaError, match="'nope'"):
        generator(SIMPLE, ("b",), ("nope",)).partition_paths(ROWS)


def test_a_list_is_no_key_and_no_partition() -> None:
    table = pa.table({"k": [[1]], "p": ["x"]})
    with pytest.raises(SchemaError, match="list"):
        generator(SIMPLE, ("k",), ("p",)).record_keys(table)
    with pytest.raises(SchemaError, match="list"):
        generator(SIMPLE, ("p",), ("k",)).partition_paths(table)


@pytest.mark.parametrize(
    ("kind", "keys", "fields"),
    [
        (SIMPLE, ("a", "b"), ("p",)),
        (SIMPLE, ("a",), ("p", "b")),
        (TIMESTAMP, ("a",), ()),
        (CUSTOM, ("a",), ("p",)),
    ],
)
def test_fields_that_do_not_fit_the_generator(
    kind: KeyGeneratorType, keys: tuple[str, ...], fields: tuple[str, ...]
) -> None:
    with pytest.raises(OptionError, match=r"hoodie\.datasource\.write"):
        generator(kind, keys, fields)


def test_without_key_fields_there_are_paths_but_no_keys() -> None:
    keyless = generator(SIMPLE, (), ("b",))
    assert keyless.partition_paths(ROWS).to_pylist() == ["1", "2", "3", "4"]
    with pytest.raises(OptionError, match=r"recordkey\.field"):
        keyless.record_keys(ROWS)


def test_time_options_are_needed_only_for_times() -> None:
    assert KeyGenerator.of(KeySpec(CUSTOM, ("a",), ("p:SIMPLE",))).timestamp_format is None
    with pytest.raises(OptionError, match=r"timestamp\.type"):
        KeyGenerator.of(KeySpec(CUSTOM, ("a",), ("p:TIMESTAMP",)))


def test_no_rows_and_many_chunks() -> None:
    both = generator(COMPLEX, ("a", "b"), ("p", "b"))
    assert both.record_keys(ROWS.slice(0, 0)).to_pylist() == []
    assert both.partition_paths(ROWS.slice(0, 0)).to_pylist() == []
    parts = pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1, 0), ROWS.slice(1)])
    assert both.record_keys(parts).to_pylist() == both.record_keys(ROWS).to_pylist()
    assert both.partition_paths(parts).to_pylist() == both.partition_paths(ROWS).to_pylist()


VALUES = st.none() | st.sampled_from(["", "x", "y z", "é", "0"])


@given(st.lists(st.tuples(VALUES, VALUES, st.integers(0, 2)), max_size=8))
def test_rows_do_not_influence_each_other(rows: list[tuple[str | None, str | None, int]]) -> None:
    table = pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.string()),
            "p": pa.array([row[1] for row in rows], pa.string()).dictionary_encode(),
            "i": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    both = generator(COMPLEX, ("i", "a"), ("p", "i"), hive_style=True)
    keys, paths = both.record_keys(table).to_pylist(), both.partition_paths(table).to_pylist()
    for (a, p, i), key, path in zip(rows, keys, paths, strict=True):
        assert key == f"i:{i},a:{'__null__' if a is None else a or '__empty__'}"
        assert path == f"p={p or DEFAULT}/i={i}"

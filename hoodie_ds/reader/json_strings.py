"""Rows as JSON strings, column by column: the images of rows in the answers of CDC queries.

Values are written as Hudi writes them: dates as days, timestamps and times as the stored number,
lists as arrays, structs and maps as objects. Decimals, of which Hudi's readers lose the value, are
numbers; binary is base64.
"""

from __future__ import annotations

import base64
import json
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.record.keys.epoch_time import stored_timestamp
from hoodie_ds.record.keys.java_strings import java_strings

_NULL: Final = "null"
_ESCAPED: Final = r'["\\\x00-\x1f]'


def json_objects(rows: pa.StructArray, with_nulls: bool) -> pa.Array:
    """Return a JSON object for each struct, null for null, with or without null columns.

    In structs within the rows, null columns are left out where the rows' own are.
    """
    if rows.type.num_fields == 0:
        return pc.if_else(rows.is_valid(), "{}", pa.scalar(None, pa.string()))
    parts = []
    for number, field in enumerate(rows.type):
        name = f",{json.dumps(field.name, ensure_ascii=False)}:"
        texts = _texts(pc.struct_field(rows, [number]), with_nulls)
        named = pc.binary_join_element_wise(name, texts, "")
        parts.append(pc.fill_null(named, f"{name}{_NULL}" if with_nulls else ""))
    joined = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), 1)
    whole = pc.binary_join_element_wise("{", joined, "}", "")
    return pc.if_else(rows.is_valid(), whole, pa.scalar(None, pa.string()))


def _texts(values: pa.Array, with_nulls: bool) -> pa.Array:
    """JSON of each value; null stays null."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return pc.take(_texts(values.dictionary, with_nulls), values.indices)
    if pa.types.is_struct(kind):
        return json_objects(values, with_nulls)
    if pa.types.is_nested(kind):
        return _nested(values, with_nulls)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return _quoted(values.cast(pa.string()))
    if pa.types.is_floating(kind):
        finite = pc.is_finite(values)
        text = java_strings(values)
        return pc.if_else(finite, text, _quoted(text))
    if pa.types.is_timestamp(kind):
        return stored_timestamp(values).cast(pa.string())
    if pa.types.is_date(kind):
        return values.cast(pa.date32()).cast(pa.int32()).cast(pa.string())
    if pa.types.is_time(kind):
        return values.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _base64(values)
    return values.cast(pa.string())  # numbers, booleans and decimals


def _nested(values: pa.Array, with_nulls: bool) -> pa.Array:
    """Arrays, and maps as objects."""
    is_map = pa.types.is_map(values.type)
    if is_map:
        item = pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])
        values = values.cast(pa.list_(item))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0), np.int32)
    flat = values.flatten()
    if is_map:
        keys = _quoted(pc.struct_field(flat, [0]).cast(pa.string()))
        items = pc.fill_null(_texts(pc.struct_field(flat, [1]), with_nulls), _NULL)
        texts = pc.binary_join_element_wise(keys, items, ":")
    else:
        texts = pc.fill_null(_texts(flat, with_nulls), _NULL)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")
    opening, closing = ("{", "}") if is_map else ("[", "]")
    whole = pc.binary_join_element_wise(opening, joined, closing, "")
    return pc.if_else(values.is_valid(), whole, pa.scalar(None, pa.string()))


def _quoted(texts: pa.Array) -> pa.Array:
    """Strings in quotes; escaped value by value, which few need."""
    odd = pc.fill_null(pc.match_substring_regex(texts, _ESCAPED), False)
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    if not pc.any(odd).as_py():
        return quoted
    found = [json.dumps(text, ensure_ascii=False) for text in texts.filter(odd).to_pylist()]
    return pc.replace_with_mask(quoted, odd, pa.array(found, pa.string()))


def _base64(values: pa.Array) -> pa.Array:
    encoded = values.cast(pa.binary()).dictionary_encode()
    texts = [f'"{base64.b64encode(value).decode()}"' for value in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(texts, pa.string()), encoded.indices)

"""Bringing Arrow data to a table's schema: base files, log blocks and incoming batches alike.

Invariant: a value is changed only as Hudi's schema resolution would (numbers widen or become
strings, strings and bytes convert into one another) and its schema on read (strings become dates or
decimals, floating-point numbers decimals), never truncated or rounded. Whole columns at a time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import without_columns
from hoodie_ds.columns.java_numbers import float_strings, widen
from hoodie_ds.columns.vectors import bytes_of, bytes_type, is_bytes, is_vector, vectors_of
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.schema import is_list_like

_INT32_MAX = 2**31 - 1
_HALF = 16
"""Bits of the floating-point type that neither Java nor Avro has."""
_TYPES = pa.types
_FAMILIES = (
    (_TYPES.is_decimal,),
    (_TYPES.is_timestamp,),
    (_TYPES.is_date,),
    (_TYPES.is_time,),
    (
        _TYPES.is_string,
        _TYPES.is_large_string,
        _TYPES.is_string_view,
        _TYPES.is_binary,
        _TYPES.is_large_binary,
        _TYPES.is_binary_view,
        _TYPES.is_fixed_size_binary,
    ),
)
"""Types that convert into one another if each value does so exactly."""
_VARIANT = {"metadata", "value"}
"""The fields of a VARIANT."""
_SHREDDED = "typed_value"
"""The field of a file that stores some values of a VARIANT as another type."""
_CAST: Final = "cast the column before the write"
_PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""The types that dictionaries of views are decoded to."""


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with the columns, order and types of a normalised schema.

    Columns are found by name. A missing column or struct field is null; one that the schema lacks
    is dropped: schema evolution decides before whether it may be. A `SchemaError` names a column
    that cannot become its target type without loss, and both types.
    """
    if table.schema.equals(schema):
        return table
    if not len(schema):
        return without_columns(table.num_rows)
    positions = _positions(table.schema.names, "")
    columns = []
    for field in schema:
        at = positions.get(field.name)
        if at is None:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            columns.append(conform_column(table.column(at), field.type, field.name))
    return pa.Table.from_arrays(columns, schema=schema)


def conform_column(column: pa.ChunkedArray, target: pa.DataType, path: str) -> pa.ChunkedArray:
    """Return one column in a type; `path` names it in errors. See `conform`."""
    if column.type == target:
        return column
    chunks = [_convert(chunk, target, path) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=target)


def _positions(names: list[str], parent: str) -> dict[str, int]:
    positions = {name: at for at, name in enumerate(names)}
    if len(positions) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaError(f"column {parent + twice!r} occurs twice; rename one of the two")
    return positions


def _convert(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    source = array.type
    types = pa.types
    if source == target:
        return array
    if types.is_null(source):
        return pa.nulls(len(array), target)
    if types.is_dictionary(source):
        return _convert(_decoded(array, target, path), target, path)
    if types.is_struct(target) and types.is_struct(source):
        return _convert_struct(array, target, path)
    if types.is_list(target) and is_list_like(source):
        return _convert_list(array, target, path)
    if is_vector(target) and is_list_like(source):
        return _convert_to_vector(array, target, path)
    if is_vector(target) and is_bytes(source):
        return vectors_of(_cast(array, bytes_type(target), path), target)
    if is_vector(source) and is_bytes(target):
        return _cast(bytes_of(array, path), target, path)
    if types.is_map(target) and types.is_map(source):
        return _convert_map(array, target, path)
    if not (types.is_nested(source) or types.is_nested(target)) and _may_cast(source, target):
        return _cast(array, target, path)
    raise _refusal(source, target, path, "there is no conversion")


def _decoded(array: pa.DictionaryArray, target: pa.DataType, path: str) -> pa.Array:
    plain = _PLAIN.get(array.type.value_type)
    try:
        if plain is not None:  # pyarrow takes no rows of views, which Polars has in categories
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(plain))
        return array.dictionary_decode()
    except pa.ArrowException as error:
        raise _refusal(array.type, target, path, str(error)) from error


def _refusal(source: pa.DataType, target: pa.DataType, path: str, why: str) -> SchemaError:
    return SchemaError(
        f"column {path!r} is {source} and cannot become the table's {target}: {why[:200]}; {_CAST}"
    )


def of_file(error: SchemaError, file: str) -> SchemaError:
    """Return an error of `conform` for the rows of a file, which no writer can cast any more."""
    alter = "alter the table's column to a type that holds all values of its files, such as string"
    return SchemaError(f"{file}: {error}".replace(_CAST, alter))


def is_shredded(stored: pa.StructType, wanted: pa.StructType) -> bool:
    """Whether a struct of a file has values of a VARIANT in a field that the table lacks."""
    return _SHREDDED in {field.name for field in stored} and {f.name for f in wanted} == _VARIANT


def _convert_struct(array: pa.StructArray, target: pa.DataType, path: str) -> pa.Array:
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    positions = _positions(names, f"{path}.")
    children = array.flatten()
    fields = [target.field(i) for i in range(target.num_fields)]
    if is_shredded(array.type, target):
        raise SchemaError(
            f"column {path!r} is a shredded VARIANT, which has values in {_SHREDDED!r} that this "
            "library does not read; let Hudi on the JVM read it, or write it without shredding"
        )
    converted = [
        _convert(children[positions[field.name]], field.type, f"{path}.{field.name}")
        if field.name in positions
        else pa.nulls(len(array), field.type)
        for field in fields
    ]
    return pa.StructArray.from_arrays(converted, fields=fields, mask=null_mask(array))


def _convert_list(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    # Lengths and values, not a cast: pyarrow 26 loses the last list of a list view in a cast.
    values = _convert(array.flatten(), target.value_type, f"{path}.element")
    lengths = pc.fill_null(array.value_lengths(), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if offsets[-1] > _INT32_MAX:
        raise _refusal(array.type, target, path, "one chunk holds more than 2^31 - 1 elements")
    return rebuild_list(array, offsets, values, target)


def _convert_to_vector(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    if not pc.all(pc.equal(array.value_lengths(), target.list_size), min_count=0).as_py():
        raise SchemaError(
            f"column {path!r} has a list of another length than {target.list_size}, that of the "
            "table's VECTOR; give each row that many elements, or null"
        )
    values = _convert(array.flatten(), target.value_type, f"{path}.element")
    vectors = pa.FixedSizeListArray.from_arrays(values, type=target)
    if not array.null_count:
        return vectors
    valid = array.is_valid()
    positions = pc.subtract(pc.cumulative_sum(valid.cast(pa.int32())), 1)
    return vectors.take(pc.if_else(valid, positions, None))


def _convert_map(array: pa.MapArray, target: pa.DataType, path: str) -> pa.Array:
    offsets = array.offsets.to_numpy()
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys = _convert(array.keys.slice(first, count), target.key_type, f"{path}.key")
    items = _convert(array.items.slice(first, count), target.item_type, f"{path}.value")
    return rebuild_map(array, offsets - first, keys, items, target)


def map_as_lists(array: pa.MapArray) -> pa.ListArray:
    """Return maps as lists of structs of ``key`` and ``value``, which ignore what nulls hold."""
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return pa.ListArray.from_buffers(
        pa.list_(entries.type),
        len(array),
        array.buffers()[:2],
        offset=array.offset,
        children=[entries],
    )


def null_mask(array: pa.Array) -> pa.Array | None:
    """Return a mask of the nulls; None, at no cost, if there are none."""
    return array.is_null() if array.null_count else None


def rebuild_list(
    array: pa.Array, offsets: npt.NDArray[Any], values: pa.Array, target: pa.DataType
) -> pa.ListArray:
    """Return a list array with `array`'s nulls, but other values and offsets."""
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), values, type=target, mask=null_mask(array)
    )


def rebuild_map(
    array: pa.Array,
    offsets: npt.NDArray[Any],
    keys: pa.Array,
    items: pa.Array,
    target: pa.DataType,
) -> pa.MapArray:
    """Return a map array with `array`'s nulls, but other entries and offsets."""
    key_field = pa.field("key", target.key_type, nullable=False)
    entries = pa.StructArray.from_arrays([keys, items], fields=[key_field, target.item_field])
    # Through a list: only newer pyarrow accepts a null mask for maps.
    lists = rebuild_list(array, offsets, entries, pa.list_(entries.type))
    return pa.Array.from_buffers(target, len(lists), lists.buffers()[:2], children=[lists.values])


def _may_cast(source: pa.DataType, target: pa.DataType) -> bool:
    types = pa.types
    if types.is_integer(source):
        return bool(
            types.is_integer(target)
            or types.is_floating(target)
            or types.is_decimal(target)
            or types.is_string(target)
        )
    if types.is_floating(source):
        wider = types.is_floating(target) and target.bit_width >= source.bit_width
        is_text = types.is_string(target) or types.is_decimal(target)
        return bool(wider or (is_text and source.bit_width > _HALF))
    if types.is_string(source) and (types.is_date32(target) or types.is_decimal(target)):
        return True
    if types.is_string(target) and (types.is_date32(source) or types.is_decimal(source)):
        return True
    return any(
        any(test(source) for test in family) and any(test(target) for test in family)
        for family in _FAMILIES
    )


def _from_zero(array: pa.Array) -> pa.Array:
    """A copy of a slice far into long strings: Arrow looks at offsets rather than at lengths."""
    ends = np.frombuffer(array.buffers()[1] or b"", np.int64)
    is_far = len(array) and ends[array.offset + len(array)] > _INT32_MAX
    return pa.concat_arrays([array]) if is_far else array


def _cast(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    source = array.type
    # Avro promotes whole numbers to floating point by rounding; everything else must be exact.
    exact = not (pa.types.is_integer(source) and pa.types.is_floating(target))
    try:
        if pa.types.is_integer(source) and pa.types.is_decimal(target):
            array = array.cast(pa.decimal128(20, 0))
        elif pa.types.is_large_string(source) or pa.types.is_large_binary(source):
            array = _from_zero(array)
        elif pa.types.is_floating(source) and not pa.types.is_floating(target):
            return float_strings(array).cast(target)  # a decimal is that of the shortest string
        elif pa.types.is_float32(source) and pa.types.is_float64(target):
            return widen(array)
        return array.cast(target, safe=exact)
    except pa.ArrowException as error:
        raise _refusal(source, target, path, str(error)) from error

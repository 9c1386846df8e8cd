"""Avro binary to Arrow, through fastavro.

Invariant: logical types never pass through Python objects: fastavro yields raw numbers and bytes,
and Arrow turns whole columns into dates, timestamps and decimals, over their full range. Damaged or
hostile bytes are a `CorruptFileError`.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from fastavro.schema import SchemaParseException

from hoodie_ds.columns.vectors import bytes_type, is_vector, vectors_of
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.schema import arrow_schema_of
from hoodie_ds.formats.avro.tree import AvroType, Kind
from hoodie_ds.formats.schema_conversion import rebuild_list, rebuild_map
from hoodie_ds.hints import COPY

_ROWS_PER_CHUNK: Final = 50_000
_DECIMAL_BYTES: Final = 16
_PADDED_DECIMAL_BYTES_MAX: Final = 32
_REMEMBERED_MAX: Final = 10_000
_RAW_LEAVES: Final = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.BYTES: pa.binary(),
    Kind.FIXED: pa.binary(),
    Kind.STRING: pa.string(),
    Kind.ENUM: pa.int32(),
}


class DatumReader:
    """Reads single data of one Avro type, each from its own bytes.

    With `plain` maps are dicts and enums symbols, instead of pairs and numbers, which are converted
    to Arrow arrays faster. Of records only the fields among `fields` are read, others are skipped.
    """

    def __init__(
        self,
        node: AvroType,
        name: str,
        *,
        plain: bool = False,
        fields: Collection[str] | None = None,
    ) -> None:
        self._name = name
        parse = _parsed_once if node.weight <= _REMEMBERED_MAX else _parsed
        with damage_in(name):
            self._schema = parse(node, plain)
        self._wanted = None
        if fields is not None:
            kept = [field for field in self._schema["fields"] if field["name"] in fields]
            self._wanted = {**self._schema, "fields": kept}

    def read(self, data: bytes | memoryview) -> Any:  # noqa: ANN401
        """Return one datum as plain Python values; anything else is a `CorruptFileError`."""
        return self.read_each([data])[0]

    def read_each(self, data: Iterable[bytes | memoryview]) -> list[Any]:
        """Return several of them."""
        found = []
        with damage_in(self._name):
            for datum in data:
                buffer = io.BytesIO(datum)
                found.append(fastavro.schemaless_reader(buffer, self._schema, self._wanted))
                if buffer.read(1):
                    raise ValueError("bytes are left over")
        return found


def decode_rows(
    rows: Iterable[bytes | memoryview],
    node: AvroType,
    name: str,
    columns: Collection[str] | None = None,
) -> pa.Table:
    """Decode records, one byte string each, into columns of the types of `avro_to_arrow`.

    Of those only `columns`, if they are few: to read a value costs little more than to skip it.
    """
    schema = arrow_schema_of(node, name)
    fields = None if columns is None else set(columns).intersection(node.names)
    if fields is not None and not 0 < 2 * len(fields) <= len(node.names):
        fields = None
    reader = DatumReader(node, name, fields=fields)
    if fields is not None:
        node = node.with_fields(fields)
        schema = pa.schema([field for field in schema if field.name in fields])
    remaining = iter(rows)
    batches = []
    # Record by record: an Avro record's length follows only from reading it. fastavro's loop is C.
    while chunk := reader.read_each(itertools.islice(remaining, _ROWS_PER_CHUNK)):
        structs = arrow_from_raw(chunk, node, pa.struct(list(schema)), name)
        batches.append(pa.RecordBatch.from_arrays(structs.flatten(), schema=schema))
    return pa.Table.from_batches(batches, schema=schema)


def arrow_from_raw(values: list[Any], node: AvroType, target: pa.DataType, name: str) -> pa.Array:
    """Return values of a `DatumReader` as an array of `target`, the Arrow type of `node`.

    A value out of its type's range is a `CorruptFileError` of the file `name`.
    """
    with damage_in(name):
        return _logical(pa.array(values, _raw_type(node)), node, target)


@contextmanager
def damage_in(name: str) -> Iterator[None]:
    """Turn what decoders raise for damaged bytes into an error that names the file."""
    try:
        yield
    except (
        ArithmeticError,
        EOFError,
        LookupError,
        MemoryError,
        RecursionError,
        SchemaParseException,
        TypeError,
        ValueError,
    ) as error:
        raise CorruptFileError(
            f"{name}: its Avro data is damaged ({str(error)[:200]})",
            COPY,
            name,
        ) from error


def _parsed(node: AvroType, plain: bool) -> Any:  # noqa: ANN401
    return fastavro.parse_schema(_raw_schema(node, itertools.count(), plain))


# A table's files have few schemas, and `parse_avro` returns the same node for the same schema.
_parsed_once = lru_cache(maxsize=64)(_parsed)


def _raw_schema(node: AvroType, serial: Iterator[int], plain: bool) -> Any:  # noqa: ANN401
    """The schema without logical types and named types, which has the same binary form."""
    children = [_raw_schema(child, serial, plain) for child in node.children]
    match node.kind:
        case Kind.UNION:
            return children
        case Kind.ARRAY:
            return {"type": "array", "items": children[0]}
        case Kind.MAP if plain:
            return {"type": "map", "values": children[0]}
        case Kind.MAP:  # in Avro binary, a map is an array of pairs
            entry = _raw_record(["key", "value"], ["string", *children], serial)
            return {"type": "array", "items": entry}
        case Kind.RECORD:
            return _raw_record(node.names, children, serial)
        case Kind.FIXED:
            return {"type": "fixed", "name": f"T{next(serial)}", "size": node.size}
        case Kind.ENUM if plain:
            return {"type": "enum", "name": f"T{next(serial)}", "symbols": list(node.names)}
        case Kind.ENUM:
            return "int"
    return node.kind.value


def _raw_record(
    names: Iterable[str], children: Iterable[Any], serial: Iterator[int]
) -> dict[str, Any]:
    fields = [{"name": n, "type": child} for n, child in zip(names, children, strict=True)]
    return {"type": "record", "name": f"T{next(serial)}", "fields": fields}


def _raw_type(node: AvroType) -> pa.DataType:
    match node.kind:
        case Kind.UNION:
            return _raw_type(node.optional or node.children[0])
        case Kind.ARRAY:
            return pa.list_(_raw_type(node.children[0]))
        case Kind.MAP:
            return pa.list_(pa.struct([("key", pa.string()), ("value", _raw_type(*node.children))]))
        case Kind.RECORD:
            fields = zip(node.names, node.children, strict=True)
            return pa.struct([(name, _raw_type(child)) for name, child in fields])
    return _RAW_LEAVES[node.kind]


def _logical(array: pa.Array, node: AvroType, target: pa.DataType) -> pa.Array:
    match node.kind:
        case Kind.UNION:
            return _logical(array, node.optional or node.children[0], target)
        case Kind.ARRAY:
            values = _logical(array.values, node.children[0], target.value_type)
            return rebuild_list(array, array.offsets.to_numpy(), values, target)
        case Kind.MAP:
            keys, raw_items = array.values.flatten()
            items = _logical(raw_items, node.children[0], target.item_type)
            return rebuild_map(array, array.offsets.to_numpy(), keys, items, target)
        case Kind.RECORD:
            fields = [target.field(i) for i in range(target.num_fields)]
            children = [
                _logical(column, child, field.type)
                for column, child, field in zip(array.flatten(), node.children, fields, strict=True)
            ]
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
        case Kind.ENUM:
            return pa.array(node.names, pa.string()).take(array)
    if node.precision:
        return _decimals(array, target)
    if is_vector(target):
        return vectors_of(array.cast(bytes_type(target)), target)
    return array.cast(target)


def _decimals(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Two's complement big-endian bytes of any length to decimals."""
    filled = pc.fill_null(array, b"")
    offsets = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset :][: len(array) + 1]
    data = np.frombuffer(filled.buffers()[2] or b"", np.uint8)
    ends = offsets[1:].astype(np.int64)
    lengths = ends - offsets[:-1]
    if lengths.max(initial=0) > _PADDED_DECIMAL_BYTES_MAX:
        raise ValueError(f"a decimal is longer than {_PADDED_DECIMAL_BYTES_MAX} bytes")
    little_endian = np.zeros((len(array), _PADDED_DECIMAL_BYTES_MAX), np.uint8)
    numbers = np.flatnonzero(lengths)
    little_endian[numbers[data[offsets[numbers]] >= 0x80]] = 0xFF
    for byte in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > byte)
        little_endian[rows, byte] = data[ends[rows] - 1 - byte]
    kept, padding = np.hsplit(little_endian, [_DECIMAL_BYTES])
    if (padding != np.where(kept[:, -1:] >= 0x80, 0xFF, 0)).any():
        raise ValueError("a decimal has more digits than fit 16 bytes")
    buffers = [None, pa.py_buffer(np.ascontiguousarray(kept))]
    decimals = pa.Array.from_buffers(target, len(array), buffers)
    decimals.validate(full=True)
    return pc.if_else(array.is_valid(), decimals, pa.scalar(None, target))

"""Avro object container files of one record: Hudi's plans and commit metadata.

Invariant: the same schema and record give the same bytes; a container is read only if it is whole
and holds exactly one record.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import fastavro
from fastavro.schema import SchemaParseException

from hoodie_ds.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie_ds.formats.avro.decoder import DatumReader, damage_in
from hoodie_ds.formats.avro.tree import parse_avro
from hoodie_ds.hints import COPY

_MAGIC: Final = b"Obj\1"
_SYNC_BYTES: Final = 16
_VARINT_BYTES_MAX: Final = 10


def write_record(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """Return an uncompressed container of one record (Avro specification 1.11).

    The sync marker is a hash of schema and record: containers of one record are never split, so the
    marker need not be random. Fields that have a default may be missing; a `SchemaError` means that
    the record does not fit the schema, or has a field that the schema lacks.
    """
    text = json.dumps(schema, separators=(",", ":")).encode()
    body = io.BytesIO()
    try:
        fastavro.schemaless_writer(body, _parsed(text), dict(record), strict_allow_default=True)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        SchemaParseException,
        TypeError,
        ValueError,
    ) as error:
        raise SchemaError(
            f"a record does not fit the Avro schema {schema.get('name')!r}: {str(error)[:300]}; "
            "this is a fault of the writer, please report it"
        ) from error
    datum = body.getvalue()
    sync = hashlib.blake2b(text + datum, digest_size=_SYNC_BYTES).digest()
    key = b"avro.schema"
    header = [_MAGIC, _varint(1), _varint(len(key)), key, _varint(len(text)), text, b"\0", sync]
    return b"".join([*header, _varint(1), _varint(len(datum)), datum, sync])


class DatumWriter:
    """Writes single records of one Avro schema, without a container."""

    def __init__(self, schema: str) -> None:
        self._schema = fastavro.parse_schema(json.loads(schema))

    def write(self, record: Mapping[str, Any], name: str) -> bytes:
        """Return the Avro binary of a record; fields that the schema lacks are left out.

        A value that does not fit the schema is a `CorruptFileError` of `name`, the file that it
        comes from.
        """
        body = io.BytesIO()
        with damage_in(name):
            fastavro.schemaless_writer(body, self._schema, dict(record))
        return body.getvalue()


def is_container(data: bytes | memoryview) -> bool:
    """Whether bytes begin with the magic of a container."""
    return bytes(data[: len(_MAGIC)]) == _MAGIC


def read_record(data: bytes | memoryview, name: str) -> dict[str, Any]:
    """Return the record of a container, by the schema embedded in it.

    Values of logical types are the stored numbers and bytes. A damaged container, or one without
    exactly one record, is a `CorruptFileError` that names the file; a compressed one, which Hudi
    never writes, an `UnsupportedTableError`.
    """
    cursor = _Cursor(memoryview(data).cast("B"), name)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise cursor.damage("it does not begin with the magic")
    metadata = cursor.metadata()
    sync = cursor.take(_SYNC_BYTES)
    codec = metadata.get(b"avro.codec", b"null")
    if codec != b"null":
        raise UnsupportedTableError(
            f"{name}: its Avro codec is {codec[:40]!r}, only uncompressed metadata is read; let "
            "Hudi on the JVM rewrite the table's metadata"
        )
    count = cursor.varint()
    if count != 1:
        raise cursor.damage(f"it holds {count} records, not one")
    datum = cursor.take(cursor.varint())
    if cursor.take(_SYNC_BYTES) != sync or not cursor.at_end:
        raise cursor.damage("its sync marker is not where the record ends")
    schema = parse_avro(metadata.get(b"avro.schema", b""), name)
    record = DatumReader(schema, name, plain=True).read(datum)
    if not isinstance(record, dict):
        raise cursor.damage("it holds no record")
    return record


@lru_cache(maxsize=64)
def _parsed(schema: bytes) -> Any:  # noqa: ANN401
    """Parse a schema: those of all commits are few and slow to parse."""
    return fastavro.parse_schema(json.loads(schema))


def _varint(number: int) -> bytes:
    """A length as Avro writes it; lengths are not negative."""
    rest = number << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


class _Cursor:
    def __init__(self, view: memoryview, name: str) -> None:
        self._view = view
        self._name = name
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._view)

    def damage(self, what: str) -> CorruptFileError:
        return CorruptFileError(f"{self._name}: is not a whole Avro container: {what}", COPY)

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._view) - self._at:
            raise self.damage(f"{count} bytes at offset {self._at} run past its end")
        self._at += count
        return self._view[self._at - count : self._at].tobytes()

    def varint(self) -> int:
        value = 0
        for position in range(_VARINT_BYTES_MAX):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise self.damage(f"the number before offset {self._at} is too long")

    def metadata(self) -> dict[bytes, bytes]:
        entries = {}
        while count := self.varint():
            if count < 0:  # the block's size in bytes follows, which only skipping needs
                self.varint()
            for _ in range(abs(count)):  # each takes bytes, so a forged count fails at the end
                key = self.take(self.varint())
                entries[key] = self.take(self.varint())
        return entries

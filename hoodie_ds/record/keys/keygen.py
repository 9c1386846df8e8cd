"""Key generators: the record key and the partition path of every row.

Invariant: a row gets the key and the folder that Hudi's key generator of the same type and options
gives it on the write path of its upserts, or the batch is refused; no row is ever written under a
null or empty key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.config.key_generation import check_key_generation
from hoodie_ds.config.table_options import TableOptions
from hoodie_ds.errors import OptionError, RecordKeyError
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.keys.java_strings import java_strings
from hoodie_ds.record.keys.partition_path import Coded, distinct, folders, joined
from hoodie_ds.record.keys.timestamp_format import TimestampFormat

AnyArray = TypeVar("AnyArray", pa.Array, pa.ChunkedArray)

_NULL = "__null__"
_EMPTY = "__empty__"


@dataclass(frozen=True, slots=True)
class KeySpec:
    """What a table says about its keys and partitions."""

    kind: KeyGeneratorType
    record_key_fields: tuple[str, ...]  # in order; dots descend into structs
    partition_fields: tuple[str, ...] = ()  # for CUSTOM ``field:SIMPLE`` or ``field:TIMESTAMP``
    hive_style: bool = False  # folders as ``field=value``
    url_encode: bool = False  # special characters of values as ``%XX``
    timestamp_options: Mapping[str, str] = field(default_factory=dict)
    """``hoodie.keygen.timebased.*`` options by their full names"""
    consistent_logical_timestamp: bool = False  # see `java_strings`
    complex_key_prefixed: bool = True
    """Whether COMPLEX with a single field writes ``field:value``, as up to 0.14.0 and from 1.1 on,
    or the bare value, as the releases between."""


@dataclass(frozen=True, slots=True)
class KeyGenerator:
    """Record keys and partition paths of Arrow tables; made by `of`, which checks the spec."""

    spec: KeySpec
    timestamp_format: TimestampFormat | None

    @classmethod
    def of(cls, spec: KeySpec) -> KeyGenerator:
        """Check a spec and compile its patterns.

        An `OptionError` means that the fields or the time options do not fit the key generator.
        """
        # Some tables name partition fields with NON_PARTITION: their paths are empty.
        named = () if spec.kind is KeyGeneratorType.NON_PARTITION else spec.partition_fields
        check_key_generation(spec.kind, spec.record_key_fields, named)
        timed = any(is_time for _, is_time in _partition_fields(spec))
        return cls(spec, TimestampFormat.of(spec.timestamp_options) if timed else None)

    def record_keys(self, table: pa.Table) -> pa.ChunkedArray:
        """Return the record key of each row, never null or empty.

        A single field gives its bare string; several give ``f1:v1,f2:v2`` with ``__null__`` and
        ``__empty__`` for missing values. Rows whose field, or every one of several, is null or
        empty are a `RecordKeyError`; a missing field, or one of a type without strings, is a
        `SchemaError`.
        """
        names = self.spec.record_key_fields
        if not names:
            remedy = "name the fields of the record key"
            raise OptionError(TableOptions.record_key_fields.key, None, remedy)
        strings = [
            java_strings(
                _unicode(resolve(table, name), name), self.spec.consistent_logical_timestamp
            )
            for name in names
        ]
        self._check_keys(table, strings)
        complex_key = self.spec.kind is KeyGeneratorType.COMPLEX and self.spec.complex_key_prefixed
        if len(names) == 1 and not complex_key:
            return strings[0]
        pieces: list[object] = []
        for i, (name, text) in enumerate(zip(names, strings, strict=True)):
            pieces += [f"{',' if i else ''}{name}:", _with_placeholders(text)]
        return _chunked(pc.binary_join_element_wise(*pieces, ""))

    def partition_paths(self, table: pa.Table) -> pa.DictionaryArray:
        """Return the partition path of each row; ``""`` in a table without partitions.

        A value that cannot name a folder inside the table, or a time that cannot be read, is a
        `RecordKeyError`; a missing field, or one of an unfit type, is a `SchemaError`.
        """
        fields = _partition_fields(self.spec)
        if not fields:
            return pa.DictionaryArray.from_arrays(np.zeros(table.num_rows, np.int64), [""])
        return joined([self._folders(table, name, is_time) for name, is_time in fields])

    def _folders(self, table: pa.Table, name: str, is_time: bool) -> Coded:
        consistent = self.spec.consistent_logical_timestamp
        column = resolve(table, name)
        if is_time:
            assert self.timestamp_format is not None, self.spec
            values = self.timestamp_format.encode(_unicode(column, name), name, consistent)
        else:
            java_strings(pa.array([], column.type))  # refuses a type without strings, by name
            codes, found = distinct(column)
            strings = java_strings(_unicode(found, name), consistent)
            values = Coded(codes, tuple(strings.to_pylist()))
        # A '/' in a formatted time is in a fixed place of the pattern, so it is never ambiguous.
        alone = is_time or len(self.spec.partition_fields) == 1
        return folders(name, values, self.spec.hive_style, self.spec.url_encode, alone)

    def _check_keys(self, table: pa.Table, strings: list[pa.ChunkedArray]) -> None:
        if any(text.null_count == 0 and not _has_empty(text) for text in strings):
            return
        missing = [pc.fill_null(pc.equal(text, ""), True) for text in strings]
        bad = reduce(pc.and_, missing)
        count = pc.sum(bad).as_py() or 0
        if count == 0:
            return
        row = pc.index(bad, True).as_py()
        # Of the other columns only those that name the row: it may hold secrets.
        others = [name for name, _ in _partition_fields(self.spec)]
        names = [*self.spec.record_key_fields, *others]
        values = [java_strings(resolve(table, name).slice(row, 1)).to_pylist()[0] for name in names]
        shown = ", ".join(f"{n}={v!r}"[:200] for n, v in zip(names, values, strict=True))
        raise RecordKeyError(
            f"{count} of {table.num_rows} rows have no record key: "
            f"{', '.join(map(repr, self.spec.record_key_fields))} is null or empty there, first in "
            f"row {row} of the batch ({shown}); filter such rows out or choose another "
            f"{TableOptions.record_key_fields.key}"
        )


def _partition_fields(spec: KeySpec) -> list[tuple[str, bool]]:
    """Name of each partition field, and whether it is formatted as a time."""
    match spec.kind:
        case KeyGeneratorType.NON_PARTITION:
            return []
        case KeyGeneratorType.CUSTOM:
            parts = [entry.partition(":") for entry in spec.partition_fields]
            return [(name, kind.upper() == "TIMESTAMP") for name, _, kind in parts]
    return [(name, spec.kind is KeyGeneratorType.TIMESTAMP) for name in spec.partition_fields]


def _unicode(column: AnyArray, name: str) -> AnyArray:
    """Refuse strings that are not UTF-8; Arrow accepts any bytes, as Spark does in a cast."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise RecordKeyError(
            f"field {name!r} holds bytes that are not UTF-8 text ({str(error)[:200]}), which "
            "cannot name a row or a folder; decode or correct the values"
        ) from error
    return column


def _with_placeholders(text: pa.ChunkedArray) -> pa.ChunkedArray:
    if _has_empty(text):
        text = pc.if_else(pc.equal(text, ""), _EMPTY, text)
    return pc.fill_null(text, _NULL) if text.null_count else text


def _has_empty(text: pa.ChunkedArray) -> bool:
    return bool(pc.min(pc.binary_length(text)).as_py() == 0)


def _chunked(values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])

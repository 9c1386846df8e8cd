"""Parquet base files, written with the footers of Hudi's own Avro writer.

Invariant: every written page has a checksum. Parquet's footer has none: damage there is found by
the checksums in the commit, of the whole file and of the footer.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie_ds.columns.java_order import java_order
from hoodie_ds.columns.meta_columns import META_COLUMNS
from hoodie_ds.columns.vectors import vector_names
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.column_ranges import ColumnRanges
from hoodie_ds.formats.parquet.avro_types import as_stored, stored_schemas
from hoodie_ds.formats.parquet.bloom_filter import BloomFilterBuilder, BloomParams, KeptFilter
from hoodie_ds.formats.parquet.legacy_calendar import SPARK_VERSION_FOOTER
from hoodie_ds.formats.schema_conversion import conform, conform_column

AVRO_SCHEMA_FOOTER: Final = "parquet.avro.schema"
VECTORS_FOOTER: Final = "hoodie.vector.columns"
MIN_KEY_FOOTER: Final = "hoodie_min_record_key"
MAX_KEY_FOOTER: Final = "hoodie_max_record_key"

_COMMIT_TIME, _COMMIT_SEQNO, _RECORD_KEY, _PARTITION_PATH, _FILE_NAME = META_COLUMNS
_REPETITIVE: Final = (_COMMIT_TIME, _PARTITION_PATH, _FILE_NAME)
_UNIQUE: Final = (_COMMIT_SEQNO, _RECORD_KEY)
_PROLEPTIC_SPARK: Final = "3.5.0"
"""A version whose files Spark and Hudi read without rebasing, also dates before 1582. Without a
version they refuse those. The footer has no other effect."""
_FIRST_ASTRAL_BYTE: Final = 0xF0  # first UTF-8 byte of the characters beyond U+FFFF
_HIGH_CHARACTER: Final = r"[\x{E000}-\x{10FFFF}]"
REPEATED_STRING: Final = pa.dictionary(pa.int32(), pa.string())


class BaseFileWriter:
    """Writes one Parquet file with Hudi's footers (Hudi tech spec, "Base Files").

    Rows are buffered until a row group is full, so many small tables cost no more than one large
    one. Meta columns that repeat one value may be dictionary arrays, which are written without
    decoding, and so may the string columns `dictionaries`. If writing fails, the sink's owner
    discards the sink; there is no other abort.

    `sink` is not closed. `avro_schema` is `schema` as Avro JSON, for readers on the JVM. A row
    group is closed at `row_group_bytes` Arrow bytes, and has at most one and a half times as many.
    `ranges` are widened by the rows, and complete once the file is closed.
    `has_keys` says whether the record keys are the user's; the range of automatic ones is of no
    use.
    """

    def __init__(
        self,
        sink: BinaryIO,
        schema: pa.Schema,
        avro_schema: str,
        codec: str,
        row_group_bytes: int,
        dictionaries: Collection[str] = (),
        bloom: BloomParams | KeptFilter | None = None,
        has_keys: bool = True,
        ranges: ColumnRanges | None = None,
    ) -> None:
        if bloom and _RECORD_KEY not in schema.names:
            raise SchemaError(f"a bloom filter is of column {_RECORD_KEY!r}, which the file lacks")
        self._repetitive = frozenset({*_REPETITIVE, *dictionaries} & set(schema.names))
        encoded = pa.schema([self._encoded(field) for field in schema])
        loose, self._schema, self._enums = stored_schemas(encoded, avro_schema)
        self._plain = pa.schema([field for field in loose if field.name not in self._repetitive])
        self._row_group_bytes = max(1, row_group_bytes)
        self._footers = {
            AVRO_SCHEMA_FOOTER: avro_schema,
            "writer.model.name": "avro",
            SPARK_VERSION_FOOTER: _PROLEPTIC_SPARK,
        }
        if vectors := vector_names(schema):
            self._footers[VECTORS_FOOTER] = vectors
        self._keys = KeyRange()
        self._ranges = ranges
        self._footer: list[pq.FileMetaData] = []
        self._has_keys = has_keys
        self._bloom = BloomFilterBuilder(bloom) if isinstance(bloom, BloomParams) else bloom
        self._pending: list[pa.Table] = []
        self.pending_bytes = 0
        self._num_rows = 0
        self._writer = pq.ParquetWriter(
            sink,
            self._schema,
            compression=codec,
            use_dictionary=[leaf for field in schema for leaf in _dictionary_leaves(field)],
            store_schema=False,
            write_page_checksum=True,
            metadata_collector=self._footer,
        )

    def __del__(self) -> None:
        # A failed task closes its file before it drops the writer, whose destructor would write.
        if hasattr(self, "_writer"):
            self._writer.is_open = False

    def write(self, table: pa.Table) -> None:
        """Add rows with every column of the schema; a `SchemaError` names one that does not fit."""
        if not table.num_rows:
            return
        table = self._as_stored(table)
        if self._has_keys and _RECORD_KEY in self._schema.names:
            self._keys.add(table.column(_RECORD_KEY))
            if self._bloom is not None:
                self._bloom.add(table.column(_RECORD_KEY))
        if self._ranges is not None:
            self._ranges.add(table)
        self._num_rows += table.num_rows
        self._pending.append(table)
        self.pending_bytes += table.nbytes
        if self.pending_bytes >= self._row_group_bytes:
            self.flush()

    def close(self) -> int:
        """Write the buffered rows and the footer; returns the number of rows of the file."""
        self.flush()
        if self._bloom is not None:
            self._footers |= self._bloom.footers()
        if self._keys.min is not None and self._keys.max is not None:
            self._footers |= {MIN_KEY_FOOTER: self._keys.min, MAX_KEY_FOOTER: self._keys.max}
        self._writer.add_key_value_metadata(self._footers)
        self._writer.close()
        if self._ranges is not None:
            self._ranges.measure(*self._footer)
        return self._num_rows

    def _encoded(self, field: pa.Field) -> pa.Field:
        kind = REPEATED_STRING if field.name in self._repetitive else field.type
        return pa.field(field.name, kind)

    def _as_stored(self, table: pa.Table) -> pa.Table:
        plain = conform(table, self._plain)
        columns = [
            _repeated(table.column(field.name), field.name)
            if field.name in self._repetitive
            else plain.column(field.name)
            for field in self._schema
        ]
        return as_stored(
            pa.Table.from_arrays(columns, self._schema.names), self._schema, self._enums
        )

    def flush(self) -> None:
        """Write the buffered rows as a row group, to free their memory."""
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending).unify_dictionaries()
        groups = max(1, round(self.pending_bytes / self._row_group_bytes))
        self._pending = []
        self.pending_bytes = 0
        self._writer.write_table(rows, row_group_size=-(-rows.num_rows // groups))


class KeyRange:
    """Smallest and largest of all added keys, by UTF-16 code units.

    Arrow compares UTF-8 bytes, which is the order of code points. Java's order differs from it only
    between characters beyond U+FFFF, whose surrogates come first, and U+E000 to U+FFFF.
    """

    def __init__(self) -> None:
        self.min: str | None = None
        self.max: str | None = None

    def add(self, keys: pa.ChunkedArray) -> None:
        """Widen the range by a string column; nulls do not count."""
        for chunk in keys.chunks:
            if _has_astral(chunk):
                high = pc.fill_null(pc.match_substring_regex(chunk, _HIGH_CHARACTER), False)
                # The rare fallback: a loop over the keys that have a character from U+E000 on.
                for key in set(chunk.filter(high).to_pylist()):
                    self._widen(key, key)
                chunk = chunk.filter(pc.invert(high))
            bounds = pc.min_max(chunk).as_py()
            if bounds["min"] is not None:
                self._widen(bounds["min"], bounds["max"])

    def _widen(self, low: str, high: str) -> None:
        self.min = low if self.min is None else min(self.min, low, key=java_order)
        self.max = high if self.max is None else max(self.max, high, key=java_order)


def _has_astral(keys: pa.Array) -> bool:
    offsets, data = keys.buffers()[1:]
    if not len(keys) or data is None:
        return False
    bounds = np.frombuffer(offsets, np.int32)[[keys.offset, keys.offset + len(keys)]]
    data_bytes = np.frombuffer(data, np.uint8)[bounds[0] : bounds[1]]
    return bool(data_bytes.max(initial=0) >= _FIRST_ASTRAL_BYTE)


def _repeated(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        column = conform_column(column, pa.string(), name).dictionary_encode()
    return column.cast(REPEATED_STRING)


def _dictionary_leaves(field: pa.Field) -> list[str]:
    """Paths of the Parquet columns worth a dictionary: all but those that never repeat."""
    return [] if field.name in _UNIQUE else _leaves(field.type, field.name)


def _leaves(kind: pa.DataType, path: str) -> list[str]:
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return [leaf for child in fields for leaf in _leaves(child.type, f"{path}.{child.name}")]
    if pa.types.is_list(kind):
        return _leaves(kind.value_type, f"{path}.list.element")
    if pa.types.is_map(kind):
        return [f"{path}.key_value.key", *_leaves(kind.item_type, f"{path}.key_value.value")]
    return [path]

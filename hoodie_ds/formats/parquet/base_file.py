"""Parquet base files, written with the footers of Hudi's own Avro writer.

Invariant: every written page has a checksum. Parquet's footer has none: damage there is found by
the checksum of the whole file.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds.columns.meta_columns import META_COLUMNS
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.parquet.avro_types import as_stored, stored_schemas
from hoodie_ds.formats.parquet.bloom_filter import BloomFilterBuilder, BloomParams
from hoodie_ds.formats.parquet.key_range import KeyRange
from hoodie_ds.formats.parquet.legacy_calendar import SPARK_VERSION_FOOTER
from hoodie_ds.formats.schema_conversion import conform, conform_column

AVRO_SCHEMA_FOOTER: Final = "parquet.avro.schema"
MIN_KEY_FOOTER: Final = "hoodie_min_record_key"
MAX_KEY_FOOTER: Final = "hoodie_max_record_key"

_COMMIT_TIME, _COMMIT_SEQNO, _RECORD_KEY, _PARTITION_PATH, _FILE_NAME = META_COLUMNS
_REPETITIVE: Final = (_COMMIT_TIME, _PARTITION_PATH, _FILE_NAME)
_UNIQUE: Final = (_COMMIT_SEQNO, _RECORD_KEY)
_PROLEPTIC_SPARK: Final = "3.5.0"
"""A version whose files Spark and Hudi read without rebasing, also dates before 1582. Without a
version they refuse those. The footer has no other effect."""
REPEATED_STRING: Final = pa.dictionary(pa.int32(), pa.string())


class BaseFileWriter:
    """Writes one Parquet file with Hudi's footers (Hudi tech spec, "Base Files").

    Rows are buffered until a row group is full, so many small tables cost no more than one large
    one. Meta columns that repeat one value may be dictionary arrays, which are written without
    decoding, and so may the string columns `dictionaries`. If writing fails, the sink's owner
    discards the sink; there is no other abort.

    `sink` is not closed. `avro_schema` is `schema` as Avro JSON, for readers on the JVM. A row
    group is closed at `row_group_bytes` Arrow bytes, and has at most one and a half times as many.
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
        bloom: BloomParams | None = None,
        has_keys: bool = True,
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
        self._keys = KeyRange()
        self._has_keys = has_keys
        self._bloom = BloomFilterBuilder(bloom) if bloom else None
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

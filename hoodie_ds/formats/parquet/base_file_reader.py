"""Parquet base files of any engine, read into a table's schema; checksums are verified."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie_ds.columns.arrow_columns import Mask, without_columns
from hoodie_ds.columns.java_order import may_differ_in_java
from hoodie_ds.errors import CorruptFileError, SchemaError
from hoodie_ds.filters.bounds import Bounds
from hoodie_ds.formats.column_ranges import ColumnRange, ColumnRanges
from hoodie_ds.formats.parquet.base_file import MAX_KEY_FOOTER, MIN_KEY_FOOTER, REPEATED_STRING
from hoodie_ds.formats.parquet.bloom_filter import (
    BLOOM_FILTER_FOOTER,
    BLOOM_TYPE_FOOTER,
    BloomFilter,
    BloomParams,
    KeptFilter,
)
from hoodie_ds.formats.parquet.legacy_calendar import LegacyCalendar
from hoodie_ds.formats.parquet.statistics import column_bounds, repetitive_strings
from hoodie_ds.formats.renaming import Renaming
from hoodie_ds.formats.schema_conversion import conform, of_file
from hoodie_ds.formats.timestamp_repair import relabelled
from hoodie_ds.hints import COPY

_PIECE_ROWS: Final = 128 * 1024
"""Rows of a piece: few enough for the processor's cache, enough to make calls cheap."""

_PIECE_BYTES: Final = 16 << 20
"""Approximate encoded bytes of a piece: several are in memory, and are larger when decoded."""

_FEWEST_ROWS: Final = 1024
"""Rows of a piece at least, however wide they are."""

_BUFFER_BYTES: Final = 1 << 20
_BUFFERS: Final = 4
"""A column chunk smaller than so many buffers is read whole, as each column takes a buffer."""

_ROWS_PER_BYTE: Final = 64
"""Rows that a byte of a base file may encode at most."""

_HARMLESS_BYTES: Final = 128 << 20
"""Bytes that an untrusted file may decode to from a few, by a codec without a limit."""

_CODEC_REACH: Final = {"UNCOMPRESSED": 1, "SNAPPY": 32, "LZ4": 256, "LZ4_RAW": 256, "GZIP": 1100}
"""The most bytes that a codec makes of one; other codecs have no useful limit."""

_USUAL_REACH: Final = 1000
"""Bytes that other codecs make of one, unless a value longer than a page repeats."""

_COUNTED: Final = (
    pa.types.is_signed_integer,
    pa.types.is_timestamp,
    pa.types.is_date32,
)
"""Types whose statistics are the integers that Arrow has, too."""


@dataclass(frozen=True, slots=True)
class MadeColumn:
    """A column that is made from others, even if a file has one of its name."""

    name: str
    made_from: pa.Schema  # the others, in the table's types
    make: Callable[[pa.Table], pa.ChunkedArray]

    def sources(self, wanted: pa.Schema) -> pa.Schema:
        """Return the columns to read in order to return `wanted`."""
        if self.name not in wanted.names:
            return wanted
        given = [field for field in wanted if field.name != self.name]
        return pa.schema([*given, *(f for f in self.made_from if f.name not in wanted.names)])

    def complete(self, rows: pa.Table, wanted: pa.Schema) -> pa.Table:
        """Return the wanted columns of rows with the columns of `sources`."""
        if self.name not in wanted.names:
            return rows
        made = self.make(conform(rows.select(self.made_from.names), self.made_from))
        return rows.append_column(self.name, made).select(wanted.names)


class BaseFileReader:
    """Reads one base file into a table's schema.

    A column that the file lacks is null, one of an older type is converted. With
    `keep_dictionaries` `pieces` may return string columns as the dictionary arrays that they are
    stored as, which are cheaper to read, to filter and to write. `trusted` says that the file's
    bytes are known to be as committed; other files are refused if they claim more content than
    their bytes usually hold. `renaming` says under which names the file has the columns, if others.

    All methods raise `CorruptFileError` if the file is no whole Parquet file or a page fails its
    checksum; the constructor raises `UnsupportedTableError` if only a newer pyarrow reads the file.
    """

    def __init__(
        self,
        source: BinaryIO,
        schema: pa.Schema,
        name: str,
        keep_dictionaries: bool = False,
        trusted: bool = False,
        made: MadeColumn | None = None,
        renaming: Renaming | None = None,
    ) -> None:
        self.schema = schema
        self._name = name
        self._made = made
        self._renaming = renaming
        self.dictionaries: frozenset[str] = frozenset()
        with self._reading():
            self._file = _open(source)
            _check_claims(self._file.metadata, source, trusted)
            self._legacy = LegacyCalendar.of(self._file.metadata, self._file.schema_arrow, name)
            if keep_dictionaries and renaming is None:
                held = schema if made is None else made.sources(schema)
                self.dictionaries = repetitive_strings(self._file.metadata, held)
            buffer_bytes = _buffer_bytes(self._file.metadata, source)
            if self.dictionaries or buffer_bytes:
                metadata = self._file.metadata
                self._file = _open(source, self.dictionaries, metadata, buffer_bytes)

    @property
    def file_name(self) -> str:
        """The file's name in its folder."""
        return self._name.rpartition("/")[2]

    @property
    def num_rows(self) -> int:
        """Number of rows in the file."""
        return int(self._file.metadata.num_rows)

    @property
    def num_row_groups(self) -> int:
        """Number of row groups in the file."""
        return int(self._file.num_row_groups)

    def rows_in(self, row_group: int) -> int:
        """Return the number of rows in a row group."""
        return int(self._file.metadata.row_group(row_group).num_rows)

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns of the file, in the types in which Arrow reads them."""
        return self._file.schema_arrow

    def greatest(self, column: str) -> int | None:
        """Return the greatest value of a column as the integer that represents it.

        None if the statistics do not say, or the file has no such column of the table's type.
        """
        kind, stored = self.schema.field(column).type, self._file.schema_arrow
        name = self._name_of(column)
        if name is None or stored.field(name).type != kind:
            return None
        if self._rebases(name) or not any(test(kind) for test in _COUNTED):
            return None
        found: list[int] = []
        for number in range(self.num_row_groups):
            group = self._file.metadata.row_group(number)
            chunks = map(group.column, range(group.num_columns))
            statistics = next(c.statistics for c in chunks if c.path_in_schema == name)
            if statistics is None or not statistics.has_min_max:
                return None
            found.append(statistics.max_raw)
        return max(found, default=None)

    def bounds(self, row_group: int, field: pa.Field) -> Bounds | None:
        """Return what the footer says of a table's column in a row group; see `Bounds`."""
        if self._made is not None and self._made.name == field.name:
            return None
        name = self._name_of(field.name)
        if name is None:
            return Bounds(values=False)
        if self._rebases(name):  # the footer's ends are days of the other calendar
            return None
        held, field = self._file.schema_arrow, field.with_name(name)
        with self._reading():
            return column_bounds(self._file.metadata, held, row_group, field)

    def key_range(self) -> tuple[str, str] | None:
        """Return the smallest and largest record key, by Java's order; None if not recorded."""
        footers = self._file.metadata.metadata or {}
        low, high = footers.get(MIN_KEY_FOOTER.encode()), footers.get(MAX_KEY_FOOTER.encode())
        if low is None or high is None:
            return None
        with self._reading():
            return low.decode(), high.decode()

    def in_key_range(self, keys: pa.Array) -> Mask:
        """Return which record keys (string, without nulls) `key_range` does not rule out."""
        bounds = self.key_range()
        if bounds is None or may_differ_in_java(*bounds):
            return np.ones(len(keys), dtype=np.bool_)
        inside = pc.and_(pc.greater_equal(keys, bounds[0]), pc.less_equal(keys, bounds[1]))
        result: Mask = inside.to_numpy(zero_copy_only=False)
        return result

    def bloom_filter(self) -> BloomFilter | None:
        """Return the bloom filter of the record keys; None if there is no usable one."""
        return BloomFilter.from_footers(self._file.metadata.metadata or {}, self._name)

    def kept_filter(self, params: BloomParams) -> KeptFilter | None:
        """Return the bloom filter for a file with some of the keys; None if it is made anew."""
        return KeptFilter.of(self._file.metadata.metadata or {}, params, self._name)

    def stored_bloom_filter(self) -> tuple[str, bytes] | None:
        """Return the kind and the text of the bloom filter as Hudi reads it; None without one."""
        footers = self._file.metadata.metadata or {}
        text = footers.get(BLOOM_FILTER_FOOTER.encode())
        kind = footers.get(BLOOM_TYPE_FOOTER.encode(), b"SIMPLE")
        return None if text is None else (kind.decode().upper(), text)

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Read all rows, with the given columns in their order or all.

        A `SchemaError` names a column that cannot be converted.
        """
        wanted = self._selection(columns)
        sources = self._sources(wanted)
        with self._reading():
            rows = self._file.read(columns=self._present(sources.names))
            rows = self._typed(_counted(rows, self.num_rows), sources)
        return self._complete(rows, wanted)

    def pieces(
        self, columns: list[str] | None = None, row_groups: Iterable[int] | None = None
    ) -> Iterator[pa.Table]:
        """Read rows piece by piece, in order; columns in `dictionaries` are dictionary arrays.

        See `read`; `row_groups` are the numbers of the row groups to read, all if None.
        """
        groups = range(self.num_row_groups) if row_groups is None else list(row_groups)
        kinds = dict.fromkeys(self.dictionaries, REPEATED_STRING)
        selected = self._selection(columns)
        wanted = pa.schema(
            [pa.field(f.name, kinds.get(f.name, f.type)) for f in self._sources(selected)]
        )
        with self._reading():
            present = self._present(wanted.names)
            # Arrow keeps everything that it has read of the requested row groups in memory.
            batches = chain.from_iterable(
                self._file.iter_batches(
                    self._piece_rows(number), [number], present, use_threads=False
                )
                for number in groups
            )
        if not present:
            counts = [self._file.metadata.row_group(number).num_rows for number in groups]
            rows = conform(without_columns(sum(counts)), wanted)
            yield self._complete(rows, selected)
            return
        while True:
            with self._reading():
                batch = next(batches, None)
                if batch is None:
                    return
                rows = self._typed(pa.Table.from_batches([batch]), wanted)
            yield self._complete(rows, selected)

    def ranges(self, columns: Iterable[str]) -> dict[str, ColumnRange]:
        """Read the ranges of columns, which may be fields of others."""
        found = ColumnRanges(columns)
        used = {
            name if name in self.schema.names else name.partition(".")[0] for name in found.found
        }
        for rows in self.pieces([name for name in self.schema.names if name in used]):
            found.add(rows)
        found.measure(self._file.metadata)
        return found.found

    def _piece_rows(self, row_group: int) -> int:
        group = self._file.metadata.row_group(row_group)
        fitting = _PIECE_BYTES * group.num_rows // max(group.total_byte_size, 1)
        return int(min(_PIECE_ROWS, max(_FEWEST_ROWS, fitting)))

    def _typed(self, rows: pa.Table, wanted: pa.Schema) -> pa.Table:
        if self._legacy is not None:
            rows = self._legacy.rebased(rows)
        if self._renaming is not None:
            rows = self._renaming.renamed(rows)
        return conform(relabelled(rows, wanted), wanted)

    def _rebases(self, name: str) -> bool:
        """Whether a column of the file may have values that are rebased."""
        at = self._file.schema_arrow.get_field_index(name)
        if self._legacy is None or at < 0:
            return False
        return self._legacy.concerns(self._file.schema_arrow.field(at))

    def _sources(self, wanted: pa.Schema) -> pa.Schema:
        return wanted if self._made is None else self._made.sources(wanted)

    def _complete(self, rows: pa.Table, wanted: pa.Schema) -> pa.Table:
        return rows if self._made is None else self._made.complete(rows, wanted)

    def _selection(self, columns: list[str] | None) -> pa.Schema:
        return self.schema if columns is None else pa.schema(map(self.schema.field, columns))

    def _name_of(self, column: str) -> str | None:
        """The name in the file of a column of the table; None if it has no such column."""
        return next(iter(self._present([column])), None)

    def _present(self, wanted: Collection[str]) -> list[str]:
        """The names in the file of some of the table's columns, of those that it has."""
        stored = set(self._file.schema_arrow.names)
        names = wanted if self._renaming is None else sorted(self._renaming.stored(wanted))
        return [name for name in names if name in stored]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except SchemaError as error:
            raise of_file(error, self._name) from error
        # Arrow reports a damaged page as OSError; errors of the storage itself are typed already.
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            raise CorruptFileError(
                f"{self._name}: is not a readable Parquet file ({str(error)[:300]})",
                COPY,
                self._name,
            ) from error


def read_base_file(
    source: BinaryIO,
    schema: pa.Schema,
    columns: list[str] | None,
    name: str,
    trusted: bool = False,
) -> pa.Table:
    """Read a base file into the table's schema; see `BaseFileReader`."""
    return BaseFileReader(source, schema, name, trusted=trusted).read(columns)


def _buffer_bytes(metadata: pq.FileMetaData, source: BinaryIO) -> int:
    """Bytes to read ahead of each column chunk; 0 to read whole ones, as object stores need.

    For a local file with large column chunks a few bytes are as fast, and save memory.
    """
    is_local = isinstance(source, io.BufferedReader)
    if not (is_local and metadata.num_row_groups and metadata.num_columns):
        return 0
    chunk_bytes = metadata.row_group(0).total_byte_size // metadata.num_columns
    return _BUFFER_BYTES if chunk_bytes > _BUFFERS * _BUFFER_BYTES else 0


def _open(
    source: BinaryIO,
    dictionaries: frozenset[str] = frozenset(),
    metadata: pq.FileMetaData | None = None,
    buffer_bytes: int = 0,
) -> pq.ParquetFile:
    return pq.ParquetFile(
        _native(source),
        pre_buffer=not buffer_bytes,
        buffer_size=buffer_bytes,
        metadata=metadata,
        read_dictionary=sorted(dictionaries),
        page_checksum_verification=True,
        coerce_int96_timestamp_unit="us",
    )


def _native(source: BinaryIO) -> BinaryIO | pa.NativeFile:
    """A source that Arrow reads without Python, of a local file or bytes; others as they are."""
    if type(source) is io.BytesIO:
        return pa.BufferReader(source.getvalue())  # which copies nothing
    if type(source) is io.BufferedReader and isinstance(source.name, str):
        with suppress(OSError):  # deleted since, or a name that Arrow does not take
            return pa.OSFile(source.name)
    return source


def _check_claims(metadata: pq.FileMetaData, source: BinaryIO, trusted: bool) -> None:
    """Refuse a footer that claims more than the file can hold, before memory is allocated for it.

    Each row of a base file has its own record key, which no encoding stores in less than some bits.
    The compression ratio of a committed file proves nothing: a repeated large value compresses by
    any factor.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    counts = [group.num_rows for group in groups]
    if metadata.num_rows != sum(counts) or min(counts, default=0) < 0:
        raise ValueError(f"it has {metadata.num_rows} rows in groups of {counts[:10]}")
    size = source.seek(0, os.SEEK_END)
    if metadata.num_rows > _ROWS_PER_BYTE * size:
        raise ValueError(f"{metadata.num_rows} rows cannot be in {size} bytes")
    if trusted or sum(group.total_byte_size for group in groups) <= _HARMLESS_BYTES:
        return
    unusual = 0
    for group in groups:
        for column in map(group.column, range(group.num_columns)):
            encoded, stored = column.total_uncompressed_size, column.total_compressed_size
            reach = _CODEC_REACH.get(column.compression)
            if encoded > (reach or _USUAL_REACH) * min(stored, size):
                if reach:
                    raise ValueError(f"{encoded} bytes of {column.path_in_schema!r} in {stored}")
                unusual += encoded
    if unusual > _HARMLESS_BYTES:
        raise ValueError(
            f"{unusual} bytes are claimed to be in {size}, and no commit in sight has the file's "
            "checksum; where the storage is trusted, 'hoodie.py.read.verify.checksums' false "
            "reads it"
        )


def _counted(rows: pa.Table, num_rows: int) -> pa.Table:
    """Keep the number of rows if none of the wanted columns is in the file."""
    if rows.num_columns:
        return rows
    return pa.table({"": pa.nulls(num_rows)})

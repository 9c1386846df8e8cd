"""Which base files Spark's own Parquet reader reads as ours does, and by which paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa

from hoodie_ds.formats.avro.schema import is_list_like
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.formats.schema_conversion import is_shredded
from hoodie_ds.formats.timestamp_repair import repaired
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import BaseFile

_FOOTERS_AT_ONCE: Final = 8
_GLOB: Final = re.compile(r"([{}\[\]*?\\])")
_TYPES = pa.types
_SAME: Final = (
    _TYPES.is_boolean,
    _TYPES.is_integer,
    _TYPES.is_floating,
    _TYPES.is_date32,
    _TYPES.is_timestamp,
    _TYPES.is_decimal128,
)
_TEXT: Final = (
    _TYPES.is_string,
    _TYPES.is_large_string,
    _TYPES.is_binary,
    _TYPES.is_large_binary,
    _TYPES.is_fixed_size_binary,
)


def natively_readable(
    storage: Storage, files: Sequence[BaseFile], schema: pa.Schema
) -> frozenset[str]:
    """Return the instants whose files Spark reads into the columns of `schema` without any loss.

    A commit writes all its files with one schema, so one footer describes all of them.
    """
    samples = {file.name.instant_time: file for file in files}

    def fits(file: BaseFile) -> bool:
        with storage.open_input(file.path) as source:
            reader = BaseFileReader(source, schema, file.path, trusted=file.trusted)
            stored = {field.name: field.type for field in reader.stored_schema}
        return all(_reads(stored.get(field.name, field.type), field.type) for field in schema)

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE, thread_name_prefix="hoodie-footers") as pool:
        found = zip(samples, pool.map(fits, samples.values()), strict=True)
        return frozenset(instant for instant, reads in found if reads)


def spark_path(folder: str, path: str) -> str:
    """Return a file's path for Spark, with glob characters escaped."""
    return _GLOB.sub(r"\\\1", f"{folder}/{path}")


def _reads(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads a file's column into a type with the same values as we do."""
    if _TYPES.is_dictionary(stored):
        stored = stored.value_type
    if _TYPES.is_struct(wanted):
        if not _TYPES.is_struct(stored) or is_shredded(stored, wanted):
            return False
        inner = {stored.field(i).name: stored.field(i).type for i in range(stored.num_fields)}
        fields = [wanted.field(i) for i in range(wanted.num_fields)]
        return all(_reads(inner.get(field.name, field.type), field.type) for field in fields)
    if _TYPES.is_list(wanted):
        return is_list_like(stored) and _reads(stored.value_type, wanted.value_type)
    if _TYPES.is_map(wanted):
        return _TYPES.is_map(stored) and (
            _reads(stored.key_type, wanted.key_type) and _reads(stored.item_type, wanted.item_type)
        )
    if any(test(wanted) for test in _TEXT):
        return any(test(stored) for test in _TEXT)
    if stored == wanted:
        return any(test(wanted) for test in _SAME)
    return _widens(stored, wanted)


def _widens(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if _TYPES.is_timestamp(stored) and _TYPES.is_timestamp(wanted):
        is_same = (stored.tz is None) == (wanted.tz is None) and stored.unit in ("ms", "us")
        return is_same and repaired(stored, wanted) == stored
    if _TYPES.is_signed_integer(stored):
        if _TYPES.is_float64(wanted):
            return bool(stored.bit_width <= 32)
        return bool(_TYPES.is_signed_integer(wanted) and wanted.bit_width >= stored.bit_width)
    # A float as a double, too, is another value to Spark than to Hudi, which reads its string.
    if _TYPES.is_decimal128(stored) and _TYPES.is_decimal128(wanted):
        more = wanted.scale - stored.scale
        return bool(more >= 0 and wanted.precision - stored.precision >= more)
    return False

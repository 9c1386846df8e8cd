"""What a filter rules out in one table: partitions, buckets, and rows of base files.

A log file may have a row of any key, and other values for a row of the base file. So with log
files, only partition and key of a row rule it out, which no change alters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import PARTITION_PATH, RECORD_KEY
from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import HoodieError
from hoodie_ds.filters.bounds import Bounds, kind_of, sortable
from hoodie_ds.filters.predicate import In, Predicate, allowed_values, columns_used
from hoodie_ds.filters.pruning import may_match
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.index.bucket_identifier import bucket_prefix
from hoodie_ds.index.bucket_index import constant_buckets
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.record.keys.java_strings import java_strings
from hoodie_ds.record.keys.keygen import KeyGenerator, KeySpec
from hoodie_ds.record.keys.partition_path import DEFAULT_PARTITION
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import PREFIX_LENGTH
from hoodie_ds.timeline.timeline import Timeline

_MOST_KEYS: Final = 10_000
_CERTAIN: Final = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
    pa.types.is_date32,
)
"""Types whose values are one string, whatever the options of the writer."""
_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_PLAIN: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.CUSTOM)


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Some record keys."""

    keys: frozenset[str]

    def among(self, records: RecordSet) -> RecordSet:
        """Return the records that have one of the keys."""
        found = pc.is_in(records.rows.column(RECORD_KEY), value_set=self._array)
        return records.take(np.flatnonzero(found.to_numpy()))

    def row_groups(self, reader: BaseFileReader, numbers: Sequence[int]) -> list[int]:
        """Return the row groups of a base file that may have one of the keys."""
        bloom = reader.bloom_filter()
        keys = self._array if bloom is None else self._array.filter(bloom.may_contain(self._array))
        wanted, column = In((RECORD_KEY,), keys), pa.field(RECORD_KEY, pa.string())
        return [n for n in numbers if may_match(wanted, {RECORD_KEY: reader.bounds(n, column)}.get)]

    @property
    def _array(self) -> pa.Array:
        return pa.array(sorted(self.keys), pa.string())


@dataclass(slots=True)
class Pruner:
    """Rules out what cannot match a predicate, in a table with the columns of `schema`.

    `keys` are those that the predicate allows, if it allows few, and `buckets` the table's buckets,
    if they are known then.
    """

    predicate: Predicate
    schema: pa.Schema
    partitions: PartitionValues
    keys: KeyFilter | None
    buckets: Buckets | None
    _prefixes: dict[int, frozenset[str]] = field(default_factory=dict)
    _kept: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        predicate: Predicate,
        properties: TableProperties,
        schema: pa.Schema,
        storage: Storage,
        timeline: Timeline,
    ) -> Pruner:
        """Return what rules files and rows of a table out, as it is read."""
        keys = record_keys(predicate, properties, schema)
        values = PartitionValues(properties, schema, columns_used(predicate))
        if keys is None:
            return cls(predicate, schema, values, None, None)
        buckets = constant_buckets(properties, storage, timeline)
        return cls(predicate, schema, values, KeyFilter(keys), buckets)

    def keeps(self, file: FileStatus) -> bool:
        """Whether rows of a data file's group may match."""
        return self._keeps(file.folder, file.path.rpartition("/")[2].removeprefix("."))

    def keeps_group(self, group: FileGroupId) -> bool:
        """Whether rows of a file group may match, whatever its files hold."""
        return self._keeps(group.partition_path, group.file_id)

    def keeps_partition(self, path: str) -> bool:
        """Whether rows of a partition may match."""
        kept = self._kept.get(path)
        if kept is None:
            kept = self._kept[path] = may_match(self.predicate, self.partitions.of(path).get)
        return kept

    def may_hold(self, path: str, known: Mapping[str, Bounds]) -> bool:
        """Whether rows of a partition may match, by what is `known` of its columns."""
        return may_match(self.predicate, {**known, **self.partitions.of(path)}.get)

    def keeps_slice(self, found: FileSlice, known: Mapping[str, Mapping[str, Bounds]]) -> bool:
        """Whether rows of a slice may match, by what is `known` of some base files, by path."""
        if found.base is None or found.base.path not in known:
            return True
        return self.may_hold(found.group.partition_path, known[found.base.path])

    def _keeps(self, partition_path: str, name: str) -> bool:
        kept = self.keeps_partition(partition_path)
        if not kept or self.buckets is None or self.keys is None:
            return kept
        return name[:PREFIX_LENGTH] in self._buckets(partition_path)

    def _buckets(self, partition_path: str) -> frozenset[str]:
        assert self.buckets is not None
        assert self.keys is not None
        count = self.buckets.num_buckets_in(partition_path)
        if count not in self._prefixes:
            keys = pa.chunked_array([sorted(self.keys.keys)], pa.string())
            found = {bucket_prefix(int(bucket)) for bucket in self.buckets.hashed(keys, count)}
            self._prefixes[count] = frozenset(found)
        return self._prefixes[count]

    def row_groups(
        self, reader: BaseFileReader, partition_path: str, numbers: Sequence[int], is_merged: bool
    ) -> list[int]:
        """Return the row groups among some of a base file that may have rows which match.

        `is_merged` says whether log files are merged into the file.
        """
        left = list(numbers)
        if not is_merged:
            partition = self.partitions.of(partition_path)
            known = partial(self._known, reader, partition)
            left = [n for n in left if may_match(self.predicate, partial(known, n))]
        if self.keys is not None and left and RECORD_KEY in self.schema.names:
            left = self.keys.row_groups(reader, left)
        return left

    def _known(
        self, reader: BaseFileReader, partition: Mapping[str, Bounds], number: int, column: str
    ) -> Bounds | None:
        """What a row group's partition says of a column, or else the footer."""
        at = self.schema.get_field_index(column)
        if at < 0:
            return None
        return partition.get(column) or reader.bounds(number, self.schema.field(at))


def record_keys(
    predicate: Predicate, properties: TableProperties, schema: pa.Schema
) -> frozenset[str] | None:
    """Return the record keys of rows that can match; None if there is no such limit."""
    given = allowed_values(predicate, RECORD_KEY) if properties.populate_meta_fields else None
    made = _of_fields(predicate, properties, schema)
    if given is None:
        return made
    texts = frozenset(str(value.as_py()) for value in given)
    return texts if made is None else texts & made


def _of_fields(
    predicate: Predicate, properties: TableProperties, schema: pa.Schema
) -> frozenset[str] | None:
    names = properties.record_key_fields
    if not names or any(schema.get_field_index(name) < 0 for name in names):
        return None
    fields = [schema.field(name) for name in names]
    limits = [allowed_values(predicate, name) for name in names]
    values = [limit for limit in limits if limit is not None]
    certain = all(any(holds(field.type) for holds in _CERTAIN) for field in fields)
    if len(values) < len(names) or not certain or prod(map(len, values)) > _MOST_KEYS:
        return None
    rows = [tuple(value.as_py() for value in row) for row in product(*values)]
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    table = pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)],
        pa.schema(fields),
    )
    kind, prefixed = properties.key_generator, properties.complex_key_prefixed
    unknown = prefixed is None and kind is KeyGeneratorType.COMPLEX and len(names) == 1
    found: set[str] = set()
    try:
        for way in (True, False) if unknown else (prefixed is not False,):
            spec = KeySpec(kind, names, complex_key_prefixed=way)
            found.update(KeyGenerator(spec, None).record_keys(table).to_pylist())
    except HoodieError:
        return None
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class PartitionValues:
    """Reads partition paths of a table with some columns.

    `used` are the columns that are asked for, None if all may be: values of others are not parsed.
    """

    properties: TableProperties
    schema: pa.Schema
    used: frozenset[str] | None

    def of(self, path: str) -> Mapping[str, Bounds]:
        """Return what is known of columns in a partition; others are left out."""
        known = {}
        if self.properties.populate_meta_fields:
            known[PARTITION_PATH] = Bounds(path, path, nulls=False)
        fields = self._fields()
        parts = [path] if len(fields) == 1 else path.split("/")
        if len(parts) != len(fields):
            return known
        for (name, is_plain), part in zip(fields, parts, strict=True):
            is_asked = is_plain and (self.used is None or name in self.used)
            bounds = self._bounds(name, part) if is_asked else None
            if bounds is not None:
                known[name] = bounds
        return known

    def _fields(self) -> list[tuple[str, bool]]:
        """The partition fields, and whether a path has their values and not a formatted time."""
        properties = self.properties
        if properties.key_generator not in _PLAIN:
            return []
        if properties.key_generator is KeyGeneratorType.CUSTOM:
            entries = [spec.partition(":") for spec in properties.partition_field_specs]
            return [(name, kind.upper() == "SIMPLE") for name, _, kind in entries]
        return [(name, True) for name in properties.partition_fields]

    def _bounds(self, name: str, part: str) -> Bounds | None:
        column = self.schema.get_field_index(name)
        text = part.removeprefix(f"{name}=")
        hive = text != part
        # A folder in the other style than the table's is of another writer.
        if (
            column < 0
            or not text
            or text == DEFAULT_PARTITION
            or hive != self.properties.hive_style
        ):
            return None
        kind = self.schema.field(column).type
        if self.properties.url_encode:
            text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
        elif "/" in text and pa.types.is_string(kind):
            # Hudi may have written the folders 2026/01/02 for the string 2026-01-02.
            return Bounds(text.replace("/", "-"), text, nulls=False)
        value = _typed(text, kind)
        return None if value is None else Bounds(value, value, nulls=False)


def _typed(text: str, kind: pa.DataType) -> object:
    """The value of a string in a path; None if that is unknown."""
    if kind_of(kind) is None or pa.types.is_timestamp(kind) or pa.types.is_floating(kind):
        return None
    try:
        value = pa.scalar(text).cast(kind)
        if java_strings(pa.array([value.as_py()], kind))[0].as_py() != text:
            return None
    except (pa.ArrowException, HoodieError):
        return None
    return sortable(value)

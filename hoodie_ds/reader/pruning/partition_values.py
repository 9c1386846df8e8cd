"""The values of the columns that a partition path is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import PARTITION_PATH
from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import HoodieError
from hoodie_ds.filters.bounds import Bounds, kind_of, sortable
from hoodie_ds.record.keys.java_strings import java_strings
from hoodie_ds.record.keys.partition_path import DEFAULT_PARTITION

_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_PLAIN: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.CUSTOM)


@dataclass(frozen=True, slots=True)
class PartitionValues:
    """Reads partition paths of a table with some columns."""

    properties: TableProperties
    schema: pa.Schema

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
            bounds = self._bounds(name, part) if is_plain else None
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

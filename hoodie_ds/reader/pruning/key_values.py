"""The record keys that a filter allows, as strings."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import HoodieError
from hoodie_ds.filters.predicate import Predicate, allowed_values
from hoodie_ds.record.keys.keygen import KeyGenerator, KeySpec

_MOST_KEYS: Final = 10_000
_CERTAIN: Final = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
    pa.types.is_date32,
)
"""Types whose values are one string, whatever the options of the writer."""


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

"""Record keys of tables whose files do not hold them (``hoodie.populate.meta.fields`` false).

The invariant: a stored row and an incoming row have the same key if and only if their record key
fields are equal, since one key generator makes both keys.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.formats.parquet.base_file_reader import MadeColumn
from hoodie_ds.record.keys.keygen import KeyGenerator, KeySpec


def virtual_keys(properties: TableProperties, schema: pa.Schema) -> MadeColumn | None:
    """Return what makes the record keys; None if files have them, or nothing was written yet."""
    fields = properties.record_key_fields
    if properties.populate_meta_fields or not fields:
        return None
    columns = {p if p in schema.names else p.partition(".")[0] for p in fields}
    made_from = pa.schema([field for field in schema if field.name in columns])
    spec = KeySpec(
        properties.key_generator, fields, complex_key_prefixed=properties.makes_prefixed_keys
    )
    return MadeColumn(RECORD_KEY, made_from, KeyGenerator(spec, None).record_keys)

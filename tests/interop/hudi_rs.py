"""The Rust reader of Hudi tables (PyPI ``hudi``) as a second opinion on what a table holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from hudi import HudiTableBuilder


def read_with_hudi_rs(path: str | Path, options: Mapping[str, str] | None = None) -> pa.Table:
    """Snapshot of the table at ``path``, the five meta columns included.

    Parameters
    ----------
    path : str or Path
        Base path, on the local disk or a URL.
    options : mapping of str to str, optional
        How to reach the storage.
    """
    table = (
        HudiTableBuilder.from_base_uri(str(path)).with_storage_options(dict(options or {})).build()
    )
    batches = [pa.record_batch(batch) for batch in table.read()]
    if not batches:
        return pa.schema(table.get_schema_with_meta_fields()).empty_table()
    return pa.Table.from_batches(batches)

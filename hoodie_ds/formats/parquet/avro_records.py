"""Parquet files of Avro records that are no rows, labelled as Hudi's Avro writer does."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds.formats.parquet.base_file import AVRO_SCHEMA_FOOTER

_CODEC: Final = "gzip"
"""The default of ``hoodie.parquet.compression.codec``, which Hudi uses here too."""


def encode_records(
    pieces: Iterable[pa.Table], schema: pa.Schema, avro_schema: str, short: Iterable[str]
) -> bytes:
    """Return a Parquet file of records, with a row group for each piece.

    `avro_schema` is `schema` as Avro JSON, for readers on the JVM. `short` are columns of short
    values: they have statistics, by which readers skip row groups.
    """
    sink = io.BytesIO()
    names = list(short)
    with pq.ParquetWriter(
        sink,
        schema,
        compression=_CODEC,
        use_dictionary=names,
        write_statistics=names,
        store_schema=False,
        write_page_checksum=True,
    ) as writer:
        for piece in pieces:
            writer.write_table(piece)
        writer.add_key_value_metadata(
            {AVRO_SCHEMA_FOOTER: avro_schema, "writer.model.name": "avro"}
        )
    return sink.getvalue()

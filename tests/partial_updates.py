"""Log blocks that lack columns, as ``MERGE INTO`` and ``UPDATE`` of Apache Hudi 1.x write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow as pa

from hoodie_ds.formats.log.data_block import encode_avro_block, encode_parquet_block
from hoodie_ds.formats.log.log_block import HeaderKey, encode_block, read_blocks
from hoodie_ds.handles import append_handle


@contextmanager
def without_columns(*lacking: str) -> Iterator[None]:
    """Let the data blocks that are written lack columns and say so."""

    def of(encode: Callable[..., bytes]) -> Callable[..., bytes]:
        def encoded(rows: pa.Table, avro_schema: str, *more: Any, **others: Any) -> bytes:
            schema = json.loads(avro_schema)
            schema["fields"] = [f for f in schema["fields"] if f["name"] not in lacking]
            full = encode(rows.drop_columns(list(lacking)), json.dumps(schema), *more, **others)
            (block,) = read_blocks(full, "a block")
            header = {**block.header, HeaderKey.IS_PARTIAL: "true"}
            return encode_block(block.block_type, header, block.content)

        return encoded

    with (
        mock.patch.object(append_handle, "encode_parquet_block", of(encode_parquet_block)),
        mock.patch.object(append_handle, "encode_avro_block", of(encode_avro_block)),
    ):
        yield

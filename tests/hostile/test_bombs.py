"""Files that hold far more than their size: those that were committed are read, others refused."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.log.data_block import decode_data_block, encode_parquet_block
from hoodie_ds.formats.log.log_block import read_blocks
from hoodie_ds.formats.parquet import base_file_reader
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.testing import one_thread
from tests.hostile.limits import within_limits

VALUE = b"\0" * 50_000
VERIFY = "hoodie.py.read.verify.checksums"


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_file_reader, "_HARMLESS_BYTES", 1 << 20)


def rasters(ts: int) -> pa.Table:
    values = [VALUE + b"%08d" % i for i in range(40)]
    return pa.table({"id": [str(i) for i in range(40)], "ts": [ts] * 40, "raster": values})


def table(path: Path, kind: str, **more: str) -> HoodieTable:
    return HoodieTable(
        str(path),
        {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.bucket.index.num.buckets": "1",
            **more,
        },
    )


KINDS = {
    "copy-on-write": ("COPY_ON_WRITE", {}),
    "bloom index": ("COPY_ON_WRITE", {"hoodie.index.type": "BLOOM"}),
    "parquet logs": ("MERGE_ON_READ", {"hoodie.logfile.data.block.format": "parquet"}),
    "Avro logs": ("MERGE_ON_READ", {"hoodie.logfile.data.block.format": "avro"}),
}


@pytest.mark.parametrize("codec", ["zstd", "brotli", "gzip"])
@pytest.mark.parametrize("name", KINDS)
def test_what_shrinks_a_thousandfold_is_read_and_written(
    tmp_path: Path, name: str, codec: str
) -> None:
    kind, more = KINDS[name]
    there = table(tmp_path, kind, **{"hoodie.parquet.compression.codec": codec, **more})
    for ts in (1, 2):
        there.upsert(rasters(ts))
    there.delete(pa.table({"id": ["7"]}))
    expected = rasters(2).filter([i != 7 for i in range(40)])
    assert there.read(["id", "ts", "raster"]).sort_by("raster").equals(expected)


@pytest.fixture
def unknown(tmp_path: Path) -> Iterator[Path]:
    """A table whose commit is of a writer that names no checksums."""
    table(tmp_path, "COPY_ON_WRITE", **{"hoodie.parquet.compression.codec": "zstd"}).upsert(
        rasters(1)
    )
    (commit,) = tmp_path.glob(".hoodie/*.commit")
    record = json.loads(commit.read_text())
    record["extraMetadata"] = {"schema": record["extraMetadata"]["schema"]}
    commit.write_text(json.dumps(record))
    yield tmp_path
    shutil.rmtree(tmp_path)


def test_where_nobody_vouches_the_user_may(unknown: Path) -> None:
    with pytest.raises(CorruptFileError, match=f"'{VERIFY}' false"):
        table(unknown, "COPY_ON_WRITE").read(["id"])
    trusting = table(unknown, "COPY_ON_WRITE", **{VERIFY: "false"})
    trusting.upsert(rasters(2))
    assert trusting.read(["ts"]).column(0).unique().to_pylist() == [2]


def bomb(codec: str) -> bytes:
    """A quarter of a gibibyte of one value, in a file that is small if the codec makes it so."""
    values = pa.array([b"\0" * (1 << 20)] * 16)
    rows = pa.table({"_hoodie_record_key": [str(i) for i in range(16)], "raster": values})
    out = io.BytesIO()
    with pq.ParquetWriter(out, rows.schema, compression=codec, use_dictionary=False) as writer:
        for _ in range(16):
            writer.write_table(rows)
    return out.getvalue()


def test_a_bomb_is_refused_before_it_bursts(unknown: Path) -> None:
    data = bomb("zstd")
    assert len(data) < (1 << 28) // 1000
    (file,) = unknown.glob("*.parquet")
    file.write_bytes(data)
    (commit,) = unknown.glob(".hoodie/*.commit")
    record = json.loads(commit.read_text())
    for stats in record["partitionToWriteStats"].values():
        stats[0]["fileSizeInBytes"] = len(data)
    commit.write_text(json.dumps(record))
    there = table(unknown, "COPY_ON_WRITE")
    with one_thread(), within_limits():
        for attempt in (there.read, lambda: there.upsert(rasters(2))):
            with pytest.raises(CorruptFileError, match=f"{file.name}.* bytes are claimed"):
                attempt()


def test_a_footer_claims_more_than_its_codec_can_give(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bomb("snappy")
    schema = pa.schema([("_hoodie_record_key", pa.string()), ("raster", pa.binary())])
    assert BaseFileReader(io.BytesIO(data), schema, "f").num_rows == 256
    monkeypatch.setitem(base_file_reader._CODEC_REACH, "SNAPPY", 20)
    with pytest.raises(CorruptFileError, match="bytes of 'raster' in "):
        BaseFileReader(io.BytesIO(data), schema, "f")


def test_a_block_that_nobody_vouches_for() -> None:
    avro = (
        '{"type":"record","name":"r","fields":[{"name":"_hoodie_record_key","type":"string"},'
        '{"name":"raster","type":"bytes"}]}'
    )
    rows = pa.table({"_hoodie_record_key": [str(i) for i in range(40)], "raster": [VALUE] * 40})
    rows = rows.set_column(1, "raster", rasters(1).column("raster"))
    (block,) = read_blocks(encode_parquet_block(rows, avro, "1", "zstd"), "f")
    with pytest.raises(CorruptFileError, match="bytes are claimed"):
        decode_data_block(block, "f")
    assert decode_data_block(block, "f", lambda: True).equals(rows)

from __future__ import annotations

import io
import zlib

import pytest

from hoodie_ds.errors import RecordKeyError
from hoodie_ds.formats.hfile.container import Codec
from hoodie_ds.formats.hfile.reader import HFile
from hoodie_ds.formats.hfile.writer import write_hfile
from tests.hfiles import GOLDEN, golden_hfiles, hfile

CREATED = "hfile.CREATE_TIME_TS"


@pytest.mark.skipif("ng" in zlib.ZLIB_RUNTIME_VERSION, reason="zlib-ng compresses otherwise")
@pytest.mark.parametrize("table", GOLDEN)
def test_the_bytes_are_those_of_hudi(table: str) -> None:
    for name, data in golden_hfiles(table):
        file = HFile(io.BytesIO(data), name)
        bloom = file.meta_block("bloomFilter")
        sink = io.BytesIO()
        created = int.from_bytes(file.info[CREATED], "big")
        metas = {} if bloom is None else {"bloomFilter": bloom}
        own = ("schema", "bloomFilterTypeCode", "minRecordKey", "maxRecordKey")
        info = {key: value for key, value in file.info.items() if key in own}
        write_hfile(sink, file.scan(), created, metas=metas, info=info)
        assert sink.getvalue() == data, name


@pytest.mark.parametrize("codec", Codec)
def test_info_and_meta_blocks_come_back(codec: Codec) -> None:
    entries = [(b"a", b"12"), (b"bbb", b"1234"), (b"c" * 300, b"")]
    file = HFile(io.BytesIO(hfile(entries, codec, 20)), "f")
    assert file.meta_block("bloomFilter") == b"AAAA" * 20
    assert file.info == {
        "schema": b'"bytes"',
        "hfile.LASTKEY": b"\x01\x2c" + b"c" * 300,
        "hfile.AVG_VALUE_LEN": b"\0\0\0\2",
        "hfile.AVG_KEY_LEN": b"\0\0\0\x65",
        "KEY_VALUE_VERSION": b"\0\0\0\1",
        "MAX_MEMSTORE_TS_KEY": bytes(8),
        CREATED: (1_700_000_000_000).to_bytes(8, "big"),
    }
    assert list(file.get_many([b"c" * 300])) == entries[2:]


@pytest.mark.parametrize("second", [b"b", b"a", b"", b"c" * 40_000], ids=["b", "a", "", "long"])
def test_keys_that_no_reader_would_find_are_refused(second: bytes) -> None:
    with pytest.raises(RecordKeyError, match="in an HFile"):
        hfile([(b"b", b""), (second, b"")])


def test_the_longest_key() -> None:
    entries = [(b"k" * 32_767, b"v")]
    assert list(HFile(io.BytesIO(hfile(entries)), "f").scan()) == entries


def test_a_block_is_full_before_its_content_would_exceed_its_size() -> None:
    """An entry takes 21 bytes more than its key and value."""
    entries = [(b"%02d" % i, b"v" * 7) for i in range(10)]
    for block_bytes, blocks in ((300, 1), (299, 2), (60, 5), (59, 10), (1, 10)):
        data = hfile(entries, Codec.NONE, block_bytes)
        assert data.count(b"DATABLK*") == blocks, block_bytes

"""HFiles: Hudi's reader and ours find the same, and both writers write the same bytes."""

from __future__ import annotations

import io
import random
import zlib
from pathlib import Path

import pytest

from hoodie_ds.formats.hfile.container import Codec
from hoodie_ds.formats.hfile.reader import HFile
from hoodie_ds.formats.hfile.writer import write_hfile
from hoodie_ds.formats.log.log_block import BlockType, encode_block, read_blocks
from tests.golden.golden_tables import assert_rows_equal, expected_rows, unzip_table
from tests.hfiles import hfile, leveled_hfile
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError

pytestmark = pytest.mark.jvm

ENTRIES = [(b"k%03d\xc3\xa9" % i, b"v%d" % i * (i % 7)) for i in range(120)]
KEYS = ["a", "k000é", "k0005", "k007é", "k008", "k119é", "k2"]
FOUND = [False, True, False, True, False, True, False]
LAYOUTS = {
    "one block": lambda codec: hfile(ENTRIES, codec),
    "blocks": lambda codec: hfile(ENTRIES, codec, 200),
    "two levels": lambda codec: leveled_hfile(ENTRIES, 12, codec),
    "five levels": lambda codec: leveled_hfile(ENTRIES, 3, codec),
}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hudi_reads_ours(jvm_hudi: JvmHudi, tmp_path: Path, layout: str, codec: Codec) -> None:
    path = tmp_path / "f.hfile"
    path.write_bytes(LAYOUTS[layout](codec))
    assert jvm_hudi.read_hfile(path, KEYS) == (ENTRIES, FOUND)
    with path.open("rb") as source:
        file = HFile(source, path.name)
        assert list(file.scan()) == ENTRIES
        there = [key.decode() for key, _ in file.get_many([key.encode() for key in KEYS])]
    assert [key in there for key in KEYS] == FOUND


@pytest.mark.skipif("ng" in zlib.ZLIB_RUNTIME_VERSION, reason="zlib-ng compresses otherwise")
@pytest.mark.parametrize("seed", range(6))
def test_hudi_writes_the_same(jvm_hudi: JvmHudi, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    lengths = (0, 1, 5, 100, 117, 118, 125, 126, 127, 128, 300)
    keys = sorted({f"{rng.randrange(4096):03x}" * rng.choice(lengths) for _ in range(20 * seed)})
    entries = [(key.encode(), rng.randbytes(rng.choice((0, 3, 40)))) for key in keys]
    codec, block_bytes = rng.choice(tuple(Codec)), rng.choice((1, 100, 1_000, 1 << 20))
    given = {"metas": {"bloomFilter": "AAAA"}, "info": {"schema": "s", "minRecordKey": "k"}}
    path = tmp_path / "f.hfile"
    more = {"codec": codec.name, "block_bytes": block_bytes, "created_ms": 1_700_000_000_000}
    jvm_hudi.write_hfile(path, entries, **more, **given)
    sink = io.BytesIO()
    metas, info = ({name: text.encode() for name, text in given[of].items()} for of in given)
    created = 1_700_000_000_000
    write_hfile(
        sink, entries, created, codec=codec, block_bytes=block_bytes, metas=metas, info=info
    )
    assert sink.getvalue() == path.read_bytes()


@pytest.mark.parametrize("codec", Codec)
def test_a_metadata_table_of_our_files(jvm_hudi: JvmHudi, tmp_path: Path, codec: Codec) -> None:
    """Those of a golden table are written again, in blocks of an entry each."""
    path = unzip_table("v9_mor_metadata", tmp_path)
    count = 0
    for file in (path / ".hoodie/metadata").rglob("*-0_*"):
        data = file.read_bytes()
        if file.suffix == ".hfile":
            file.write_bytes(_again(data, codec))
            count += 1
        elif ".log." in file.name:
            blocks = [
                encode_block(
                    block.block_type,
                    block.header,
                    _again(bytes(block.content), codec)
                    if block.block_type is BlockType.HFILE_DATA
                    else block.content,
                )
                for block in read_blocks(data, file.name)
            ]
            file.write_bytes(b"".join(blocks))
            count += 1
    assert count > 20
    metadata = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    assert_rows_equal(jvm_hudi.read(path, metadata), expected_rows("v9_mor_metadata"))
    assert_rows_equal(read_with_hudi_rs(path), expected_rows("v9_mor_metadata"))
    for file in (path / ".hoodie/metadata/files").glob("*.hfile"):
        file.write_bytes(file.read_bytes()[:100])
    # Else they would not have read it.
    with pytest.raises(JvmHudiError, match="HFile"):
        jvm_hudi.read(path, metadata)
    with pytest.raises(Exception, match="HFile trailer"):
        read_with_hudi_rs(path)


def _again(data: bytes, codec: Codec) -> bytes:
    file = HFile(io.BytesIO(data), "f")
    bloom = file.meta_block("bloomFilter")
    sink = io.BytesIO()
    write_hfile(
        sink,
        file.scan(),
        int.from_bytes(file.info["hfile.CREATE_TIME_TS"], "big"),
        codec=codec,
        block_bytes=1,
        metas={} if bloom is None else {"bloomFilter": bloom},
        info=file.info,
    )
    return sink.getvalue()

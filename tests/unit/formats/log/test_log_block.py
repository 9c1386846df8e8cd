from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.log.log_block import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_block,
    read_blocks,
)
from tests.golden.golden_tables import golden_file

ROLLBACK = encode_block(
    BlockType.COMMAND,
    {
        HeaderKey.INSTANT_TIME: "20250126040936578",
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
        HeaderKey.TARGET_INSTANT_TIME: "20250126040826878",
    },
    b"",
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
BLOCKS = st.builds(
    LogBlock,
    st.sampled_from([kind for kind in BlockType if kind is not BlockType.CORRUPT]),
    st.dictionaries(st.sampled_from(HeaderKey) | st.integers(9, 2**31 - 1), TEXT, max_size=4),
    st.binary(max_size=50),
)


def test_a_rollback_block_is_hudis_105_bytes() -> None:
    hudis = golden_file("v6_mor_failed_rolled_back", r"\.log\.3_")
    (block,) = read_blocks(hudis, "golden")
    (ours,) = read_blocks(ROLLBACK, "ours")
    for key in (HeaderKey.INSTANT_TIME, HeaderKey.TARGET_INSTANT_TIME):
        hudis = hudis.replace(block.header[key].encode(), ours.header[key].encode())
    assert hudis == ROLLBACK


def test_the_lengths_of_a_block_follow_the_specification() -> None:
    magic, size, version, ordinal, entries = struct.unpack_from(">6sqiii", ROLLBACK)
    (total,) = struct.unpack(">q", ROLLBACK[-8:])
    assert (len(ROLLBACK), magic, size, total) == (105, b"#HUDI#", 91, 97)
    assert (version, ordinal, entries) == (1, 0, 3)


@given(st.lists(BLOCKS, max_size=4))
def test_blocks_are_read_as_they_were_written(blocks: list[LogBlock]) -> None:
    data = b"".join(encode_block(b.block_type, b.header, b.content) for b in blocks)
    found = list(read_blocks(data, "f"))
    assert [LogBlock(b.block_type, b.header, bytes(b.content)) for b in found] == blocks


def test_contents_are_views_of_the_file() -> None:
    data = encode_block(BlockType.AVRO_DATA, {}, b"x" * 1000)
    (block,) = read_blocks(data, "f")
    assert isinstance(block.content, memoryview)
    assert block.content.obj is data


@pytest.mark.parametrize("length", range(1, len(ROLLBACK)))
def test_a_block_cut_anywhere_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptFileError, match="dir/f: the log block at offset 0"):
        list(read_blocks(ROLLBACK[:length], "dir/f"))


# Keys and texts of the header have no redundancy; everything around them has.
FRAME = [*range(22), *(range(len(ROLLBACK) - 20, len(ROLLBACK)))]


@pytest.mark.parametrize("at", FRAME)
def test_a_changed_byte_of_the_frame_is_corrupt(at: int) -> None:
    data = bytearray(ROLLBACK)
    data[at] ^= 0xFF
    with pytest.raises(CorruptFileError, match="f: the log block at offset 0"):
        list(read_blocks(bytes(data), "f"))


def corrupted(offset: int, layout: str, value: int) -> bytes:
    data = bytearray(encode_block(BlockType.DELETE, {HeaderKey.SCHEMA: "abc"}, b"content"))
    struct.pack_into(layout, data, offset, value)
    return bytes(data)


HOSTILE = [
    corrupted(0, ">b", 0),
    corrupted(6, ">q", -1),
    corrupted(6, ">q", 7),
    corrupted(6, ">q", 2**63 - 1),
    corrupted(6, ">q", 60),
    corrupted(14, ">i", 0),
    corrupted(18, ">i", 99),
    corrupted(18, ">i", -1),
    corrupted(22, ">i", -1),
    corrupted(22, ">i", 2**31 - 1),
    corrupted(30, ">i", -5),
    corrupted(30, ">i", 2**31 - 1),
    corrupted(37, ">q", -1),
    corrupted(37, ">q", 6),
    corrupted(37, ">q", 2**62),
    corrupted(52, ">i", 1),
    corrupted(52, ">i", -1),
    corrupted(56, ">q", 0),
    corrupted(34, ">B", 0xFF),
    b"#HUDI#" + bytes(100),
    b"\0" * 1000,
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_forged_lengths_are_corrupt_and_allocate_nothing(data: Any) -> None:
    tracemalloc.start()
    with pytest.raises(CorruptFileError, match=r"at offset (0|64) is damaged"):
        list(read_blocks(corrupted(14, ">i", 1) + data, "f"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_lenient_reading_goes_on_at_the_next_magic(data: Any) -> None:
    blocks = list(read_blocks(ROLLBACK + data + ROLLBACK, "f", lenient=True))
    commands = [block for block in blocks if block.block_type is BlockType.COMMAND]
    skipped = b"".join(block.content for block in blocks if block.block_type is BlockType.CORRUPT)
    assert blocks[-1].block_type is BlockType.COMMAND
    assert len(skipped) + len(ROLLBACK) * len(commands) == len(data) + 2 * len(ROLLBACK)


def test_lenient_reading_survives_a_torn_append() -> None:
    blocks = list(read_blocks(ROLLBACK + ROLLBACK[:50], "f", lenient=True))
    assert [block.block_type for block in blocks] == [BlockType.COMMAND, BlockType.CORRUPT]
    assert blocks[1].content == ROLLBACK[:50]


def test_a_block_that_garbage_follows_is_damaged() -> None:
    with pytest.raises(CorruptFileError, match="offset 0 is damaged: what follows"):
        list(read_blocks(ROLLBACK + b"garbage", "f"))


def test_every_log_file_of_hudi_is_blocks_to_its_end(golden: Callable[[str], list[Path]]) -> None:
    logs = [path for path in golden("") if ".log." in path.name]
    for path in logs:
        blocks = list(read_blocks(path.read_bytes(), path.name))
        assert blocks
        for block in blocks:
            again = encode_block(block.block_type, block.header, block.content)
            assert again in path.read_bytes()
    assert len(logs) > 20


def test_a_file_of_false_magics_is_skipped_piece_by_piece() -> None:
    blocks = list(read_blocks(b"#HUDI#" * 50_000, "f", lenient=True))
    assert len(blocks) == 50_000

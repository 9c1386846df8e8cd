"""Which blocks are merged, and when, where log compactions have written some of them."""

from __future__ import annotations

import pytest

from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie_ds.table.block_order import BlockPlace, in_order
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import LogFile


def place(number: int, time: str, compacted: str = "") -> BlockPlace:
    header: dict[int, str] = {HeaderKey.INSTANT_TIME: time}
    if compacted:
        header[HeaderKey.COMPACTED_BLOCK_TIMES] = compacted
    return BlockPlace.of(LOG, number, LogBlock(BlockType.AVRO_DATA, header, b""))


LOG = LogFile("p", LogFileName("f", "1", 1, "0-0-0"), ".f_1.log.1_0-0-0", 1)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([("1",), ("2",), ("1",)], "0 1 2"),
        ([("1",), ("2",), ("3", "1,2")], "2"),
        ([("1",), ("2",), ("4",), ("3", "1,2")], "3 2"),
        ([("1",), ("2",), ("4",), ("3", "1,2"), ("3", "1,2"), ("5",)], "3 4 2 5"),
        ([("1",), ("2",), ("4",), ("3", "2,1"), ("6",), ("5", "3,4")], "5 4"),
        ([("1",), ("2",), ("3", "1,2"), ("4",), ("6",), ("5", "3,4")], "5 4"),
        ([("4",), ("3", "1,2")], "0 1"),
        ([("2",), ("4",), ("3", "1,2")], "2 1"),
    ],
    ids=[
        "none",
        "at once",
        "after another write",
        "in two blocks",
        "compacted again",
        "compacted again in turn",
        "of instants that are not there",
        "of some that are not there",
    ],
)
def test_a_log_compaction_is_as_old_as_what_it_stands_for(
    blocks: list[tuple[str, ...]], expected: str
) -> None:
    places = [place(number, *block) for number, block in enumerate(blocks)]
    assert " ".join(str(one.number) for one in in_order(places)) == expected

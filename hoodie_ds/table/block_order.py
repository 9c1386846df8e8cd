"""In which order the blocks of a slice's log files are merged: a log compaction has a past place.

A log compaction of Hudi on the JVM writes the merged records of blocks into new ones, which name
the instants they stand for. What was written between its plan and its end is newer, though it comes
before them in a table of version 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie_ds.formats.log.record_positions import positions_base
from hoodie_ds.hints import COPY
from hoodie_ds.table.file_slice import LogFile


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """A block that has records: its number among all blocks of its log file, and its instant.

    `compacted` has the instants whose blocks it stands for, if a log compaction wrote it;
    `positions_base` is the instant of the base file of which it has the records' positions, if any;
    `is_partial` says that its rows have some of the columns only.
    """

    log: LogFile
    number: int
    block_type: BlockType
    time: str
    compacted: tuple[str, ...]
    positions_base: str | None
    is_partial: bool

    @classmethod
    def of(cls, log: LogFile, number: int, block: LogBlock) -> BlockPlace:
        """Return a block's place; raises `CorruptFileError` if it has no instant."""
        time = block.header.get(HeaderKey.INSTANT_TIME)
        if time is None:
            raise CorruptFileError(f"{log.path}: a block carries no instant time", COPY, log.path)
        compacted = block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
        return cls(
            log,
            number,
            block.block_type,
            time,
            tuple(compacted.split(",")) * bool(compacted),
            positions_base(block.header),
            block.is_partial,
        )


def in_order(places: Sequence[BlockPlace]) -> Sequence[BlockPlace]:
    """Return the blocks to merge, the oldest first, of all that count in the order of the files.

    Blocks of a log compaction, which may have been compacted again, take the place of the newest of
    the instants that they stand for; the blocks of those are left out (Hudi's
    ``BaseHoodieLogRecordReader.scanInternalV2``).
    """
    if not any(place.compacted for place in places):
        return places
    by_time: dict[str, list[BlockPlace]] = {}
    for place in places:
        by_time.setdefault(place.time, []).append(place)
    stands_for: dict[str, str] = {}
    newest_first: list[str] = []
    for time in reversed(by_time):
        taken = stands_for.get(time, time)
        compacted = by_time[time][0].compacted
        stands_for.update(dict.fromkeys(compacted, taken))
        is_placed_by_others = any(other in by_time for other in compacted)
        if not is_placed_by_others and taken not in newest_first:
            newest_first.append(taken)
    return [place for time in reversed(newest_first) for place in by_time[time]]

"""The container of Hudi's log files: blocks of a header map, a content and a footer map.

Invariant: a block is returned only if all of its length fields agree with one another and with the
file's bytes. No length read from a file leads to an allocation: contents are views.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.hints import COPY

Bytes: TypeAlias = bytes | memoryview

MAGIC: Final = b"#HUDI#"
_MAGIC_PATTERN: Final = re.compile(re.escape(MAGIC))
_FORMAT_VERSION: Final = 1
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_TWO_INTS: Final = struct.Struct(">ii")
_ENTRIES_MAX: Final = 1_000


class BlockType(IntEnum):
    """What a block holds (Hudi tech spec, "Log File Format")."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Keys of a block's header map (Hudi tech spec, "Log File Format")."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block of a log file; its content is a view of the file's bytes."""

    block_type: BlockType  # ``CORRUPT`` for bytes that lenient reading skipped
    header: Mapping[int, str]  # a key of a newer Hudi stays a number
    content: Bytes

    @property
    def is_partial(self) -> bool:
        """Whether its rows have some of the table's columns only."""
        partial = self.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"
        return partial and self.block_type is not BlockType.DELETE


def encode_block(block_type: BlockType, header: Mapping[int, str], content: Bytes) -> bytes:
    """Return a block's bytes; the content is copied once."""
    content_bytes = memoryview(content).nbytes
    entries = [(key, text.encode()) for key, text in header.items()]
    head = b"".join(
        [
            _TWO_INTS.pack(_FORMAT_VERSION, block_type),
            _INT.pack(len(entries)),
            *(_TWO_INTS.pack(key, len(value)) + value for key, value in entries),
            _LONG.pack(content_bytes),
        ]
    )
    footer = _INT.pack(0)
    size = len(head) + content_bytes + len(footer) + _LONG.size
    # The trailing length counts from the magic to itself, the leading one from itself to the end.
    total = _LONG.pack(size + len(MAGIC))
    return b"".join([MAGIC, _LONG.pack(size), head, content, footer, total])


def read_blocks(data: Bytes, name: str, *, lenient: bool = False) -> Iterator[LogBlock]:
    """Read the blocks of a whole log file.

    A damaged block is a `CorruptFileError` that names the file and the block's offset. With
    `lenient` reading goes on at the next magic, as Hudi's own readers do, and the skipped bytes are
    a block of type ``CORRUPT``.
    """
    view = memoryview(data).cast("B")
    start = 0
    while start < len(view):
        try:
            block, end = _Cursor(view, start, name).block()
        except CorruptFileError:
            if not lenient:
                raise
            end = _next_magic(view, start + 1)
            block = LogBlock(BlockType.CORRUPT, {}, view[start:end])
        yield block
        start = end


def first_instant(data: Bytes, name: str) -> str | None:
    """Return the instant time of a log file's first block; None if it is damaged or missing."""
    first = next(read_blocks(data, name, lenient=True), None)
    return None if first is None else first.header.get(HeaderKey.INSTANT_TIME)


def _next_magic(view: memoryview, start: int) -> int:
    found = _MAGIC_PATTERN.search(view, start)  # a pattern, since views have no find
    return found.start() if found else len(view)


class _Cursor:
    """Reads one block forwards; every read is checked against the end of the block."""

    def __init__(self, view: memoryview, start: int, name: str) -> None:
        self._view = view
        self._start = start
        self._at = start
        self._end = len(view)
        self._name = name

    def block(self) -> tuple[LogBlock, int]:
        if self._take(len(MAGIC), "magic").tobytes() != MAGIC:
            raise self._damage("it does not begin with the magic")
        size = self._long("size")
        if not 0 <= size <= self._end - self._at:
            raise self._damage(f"its size {size} runs past the end of the file")
        self._end = self._at + size - _LONG.size  # the trailing length is checked on its own
        (total,) = _LONG.unpack(self._trailing())
        if total != size + len(MAGIC):
            raise self._damage(f"its sizes {size} and {total} disagree")
        version, ordinal = self._int("format version"), self._int("block type")
        if version != _FORMAT_VERSION:
            raise self._damage(f"its format version is {version}, not {_FORMAT_VERSION}")
        if ordinal not in BlockType._value2member_map_:
            raise self._damage(f"its type is {ordinal}")
        header = self._map("header")
        content = self._take(self._long("content length"), "content")
        self._map("footer")
        if self._at != self._end:
            raise self._damage("it is longer than its parts")
        end = self._end + _LONG.size
        # Hudi's readers drop a block that garbage follows; a magic cut short is a torn append.
        if not MAGIC.startswith(self._view[end : end + len(MAGIC)].tobytes()):
            raise self._damage("what follows it is no block")
        return LogBlock(BlockType(ordinal), header, content), end

    def _damage(self, what: str) -> CorruptFileError:
        return CorruptFileError(
            f"{self._name}: the log block at offset {self._start} is damaged: {what}",
            COPY,
            self._name,
        )

    def _trailing(self) -> memoryview:
        if self._end < self._at:
            raise self._damage("it has no room for its trailing length")
        return self._view[self._end : self._end + _LONG.size]

    def _take(self, count: int, what: str) -> memoryview:
        if not 0 <= count <= self._end - self._at:
            raise self._damage(f"its {what} of {count} bytes runs past its end")
        taken = self._view[self._at : self._at + count]
        self._at += count
        return taken

    def _int(self, what: str) -> int:
        return int(_INT.unpack(self._take(_INT.size, what))[0])

    def _long(self, what: str) -> int:
        return int(_LONG.unpack(self._take(_LONG.size, what))[0])

    def _map(self, what: str) -> dict[int, str]:
        count = self._int(what)
        if not 0 <= count <= _ENTRIES_MAX:
            raise self._damage(f"its {what} has {count} entries")
        entries: dict[int, str] = {}
        for _ in range(count):
            number = self._int(what)
            value = self._take(self._int(what), what)
            key = HeaderKey(number) if number in HeaderKey._value2member_map_ else number
            try:
                entries[key] = str(value, "utf-8")
            except UnicodeDecodeError as error:
                raise self._damage(f"its {what} is not UTF-8") from error
        return entries

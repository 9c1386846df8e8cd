"""Where rows of record keys are, by a metadata table: its partition ``record_index``.

It has one place of each record key, in the file group that the hash of the key says. Where an index
is of each partition by itself, each has its own file groups, and a key may have several places; see
`index_of`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from uuid import UUID

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers, one_chunk
from hoodie_ds.config.metadata_options import MetadataOptions
from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.formats.avro.decoder import damage_in
from hoodie_ds.hints import command
from hoodie_ds.metadata_table.payload import Record, RecordType
from hoodie_ds.metadata_table.record_keys import UNPARTITIONED, file_id, index_of
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.trust import is_ahead, lacking
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.metadata_table import Scope, record_index
from hoodie_ds.table.table import Table

_PLACE: Final = "recordIndexMetadata"
_UUID: Final = 0
"""The encoding of a file id that is a UUID and a number; all others are strings."""
_NO_NUMBER: Final = -1
_STRING: Final = 1
_ID_BYTES_MAX: Final = 200
"""Bytes of a file id: names of files have 255, for instant time and write token too."""
_64_BITS: Final = (1 << 64) - 1
_UUID_AND_NUMBER: Final = re.compile(
    "([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-(0|[1-9][0-9]{0,8}))?"
)
_BITS: Final = struct.Struct(">qq")


def record_indexes(table: Table, paths: Iterable[str]) -> Iterator[str]:
    """Yield the record indexes of the rows in some partitions of a table: one, or one of each."""
    if record_index(table) == "partition":
        yield from map(index_of, paths)
    else:
        yield RECORD_INDEX


def check_indexable(root: str, path: str) -> None:
    """Refuse a partition that can have no record index by itself: names of files have its path.

    Hudi takes no file for a log file that has a dot before its instant, so it would miss keys.
    """
    is_too_long = len(file_id(index_of(path), 0).encode()) > _ID_BYTES_MAX
    if not is_too_long and "." not in path:
        return
    why = "is too long for that" if is_too_long else "has a '.', by which Hudi misses the files"
    raise UnsupportedTableError(
        f"{root}: names of files of a record index of each partition have its path, and partition "
        f"path {path!r} {why}; set {MetadataOptions.partition_index.key}=false, and if there is "
        f"an index drop it with {command('metadata', 'drop', root, '--partition', RECORD_INDEX)}"
    )


def indexed_groups(
    table: Table, metadata: MetadataTable, keys: Collection[str], paths: Iterable[str]
) -> frozenset[FileGroupId] | None:
    """Return the file groups of some partitions that hold rows of some record keys.

    None if that is not known: without an index, or where it may be of a later moment than the
    table's timeline.
    """
    if RECORD_INDEX not in metadata.partitions or is_ahead(metadata):
        return None
    indexes = record_indexes(table, paths)
    asked = pa.array(keys, pa.string())
    return frozenset(one for index in indexes for one in places_of(metadata, asked, index).groups)


def trusted_index(
    table: Table, opened: Callable[[], MetadataTable | None], scope: Scope
) -> MetadataTable | None:
    """Return the metadata table of a table whose record index has each key once in a scope.

    None if it has no such index, or that is not of the moment of the timeline with which it is
    `opened`.
    """
    if RECORD_INDEX not in table.properties.metadata_partitions or record_index(table) != scope:
        return None
    metadata = opened()
    is_whole = metadata is not None and RECORD_INDEX in metadata.partitions
    if metadata is None or not is_whole or is_ahead(metadata):
        return None
    return metadata if next(lacking(metadata), None) is None else None


@dataclass(frozen=True, slots=True)
class Places:
    """The file groups that an index has for some record keys.

    `numbers` are those of the keys among the `groups`, -1 for a key that it does not have.
    """

    keys: pa.Array
    numbers: Numbers
    groups: Sequence[FileGroupId]

    def by_key(self) -> dict[str, FileGroupId]:
        """Return the file group of each key that has one."""
        there = self.numbers >= 0
        groups = map(self.groups.__getitem__, self.numbers[there].tolist())
        return dict(zip(self.keys.filter(pa.array(there)).to_pylist(), groups, strict=True))

    def by_group(self) -> Iterator[tuple[FileGroupId, pa.Array]]:
        """Yield each file group and its keys."""
        order = np.argsort(self.numbers, kind="stable")
        ends = np.searchsorted(self.numbers, np.arange(len(self.groups) + 1), sorter=order)
        for group, (start, end) in zip(self.groups, pairwise(ends.tolist()), strict=True):
            yield group, self.keys.take(pa.array(order[start:end]))


def places_of(
    metadata: MetadataTable, keys: pa.Array | pa.ChunkedArray, index: str = RECORD_INDEX
) -> Places:
    """Return where some record keys (string) are by an index."""
    keys = one_chunk(keys)
    with damage_in(f"{metadata.view.storage.root}/{RECORD_INDEX}"):
        return Places(keys, *metadata.newest(index, keys, group_of))


def group_of(record: Record) -> FileGroupId:
    """Return the file group in which a record says that a key is."""
    place = record[_PLACE]
    partition = place["partitionName"]
    path = "" if partition == UNPARTITIONED else partition
    if place["fileIdEncoding"] != _UUID:
        return FileGroupId(path, place["fileId"])
    high, low, number = place["fileIdHighBits"], place["fileIdLowBits"], place["fileIndex"]
    uuid = UUID(int=(high & _64_BITS) << 64 | low & _64_BITS)
    return FileGroupId(path, str(uuid) if number == _NO_NUMBER else f"{uuid}-{number}")


def index_record(group: FileGroupId, epoch_ms: int) -> Record:
    """Return the record of keys that an instant of a time has put into a file group."""
    place: Record = {
        "partitionName": group.partition_path,
        "fileIdHighBits": -1,
        "fileIdLowBits": -1,
        "fileIndex": _NO_NUMBER,
        "fileId": group.file_id,
        "instantTime": epoch_ms,
        "fileIdEncoding": _STRING,
        "position": None,
    }
    numbered = _UUID_AND_NUMBER.fullmatch(group.file_id)
    if numbered is not None:
        high, low = _BITS.unpack(UUID(numbered[1]).bytes)
        number = _NO_NUMBER if numbered[2] is None else int(numbered[2])
        place |= {
            "fileIdHighBits": high,
            "fileIdLowBits": low,
            "fileIndex": number,
            "fileId": "",
            "fileIdEncoding": _UUID,
        }
    return {"type": int(RecordType.RECORD_INDEX), _PLACE: place}

"""Entries of the record index that the tasks of a write make, each of the keys that it adds.

So what a driver reads and makes does not grow with the rows: the delta commit joins the log blocks
that tasks have made; see `hoodie_ds.metadata_table.joined_keys`. Until then they are in files of
the write's temporary folder, which no other engine reads and which goes with the write, however
that ends. The commit names the files that count: those of lost tasks are in none.

A task with few keys leaves them to the driver, which finds them in the data files. What is known to
the task alone counts: keys of new file groups, and those that a base file adds to the one before if
it takes none away.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from hoodie_ds.columns.arrow_columns import Numbers, as_numpy
from hoodie_ds.config.properties.table_properties import RECORD_INDEX, is_kept
from hoodie_ds.metadata_table.compaction import entries_of
from hoodie_ds.metadata_table.delta_commit import new_groups, record_block
from hoodie_ds.metadata_table.payload import encode_record
from hoodie_ds.metadata_table.record_index import index_record, record_indexes
from hoodie_ds.metadata_table.record_keys import file_groups_of, file_id, groups_among
from hoodie_ds.storage.protocol import names_in
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.key_files import KeyFiles
from hoodie_ds.timeline.instant_time import epoch_ms
from hoodie_ds.timeline.paths import METADATA_TABLE, keys_path

LEAST_KEYS: Final = 1_000
"""New keys from which on a task makes their entries itself."""
_MOST_KEYS: Final = 1 << 20
"""Keys that a task holds before it puts a file."""


def takes_keys(table: Table) -> bool:
    """Whether the tasks of a write can make entries of a table's record index."""
    return RECORD_INDEX in table.properties.metadata_partitions and is_kept(table.properties)


class TaskKeys:
    """The keys that one task adds to file groups, and the files that it puts of them.

    `token` is the attempt's own write token.
    """

    def __init__(self, table: Table, time: str, token: str) -> None:
        self._table, self._time, self._token = table, time, token
        self._epoch_ms = epoch_ms(time, table.properties.timeline_in_utc)
        self._put_files: dict[str, tuple[int, str]] = {}
        self._files: list[str] = []
        self._held: list[tuple[FileGroupId, pa.Array]] = []
        self._num_keys = 0
        self._lock = Lock()  # files are also finished in the thread that flushes

    def add(self, path: str, group: FileGroupId, keys: Sequence[pa.Array]) -> None:
        """Take all keys that a data file adds to its file group."""
        with self._lock:
            self._files.append(path)
            self._held += ((group, piece.cast(pa.string())) for piece in keys)
            self._num_keys += sum(map(len, keys))
            if self._num_keys >= _MOST_KEYS:
                self._put()

    def close(self) -> KeyFiles:
        """Put the rest of the keys, unless all of them are few."""
        if self._num_keys >= LEAST_KEYS or (self._num_keys and self._put_files):
            self._put()
        return self._put_files

    def _put(self) -> None:
        names = names_in(self._table.storage, f"{METADATA_TABLE}/{RECORD_INDEX}")
        held: dict[str, list[tuple[FileGroupId, pa.Array]]] = {}
        for group, piece in self._held:
            (index,) = record_indexes(self._table, [group.partition_path])
            held.setdefault(index, []).append((group, piece))
        groups = {index: groups_among(names, index) for index in held}
        groups |= {i: new_groups(self._table) for i, n in groups.items() if not n and "/" in i}
        if all(groups.values()):  # else the index was dropped meanwhile
            name = f"{self._token}_{len(self._put_files)}"
            parts: list[tuple[str, int, int, str]] = []
            with self._table.storage.open_output(keys_path(self._time, name)) as file:
                for index, pieces in held.items():
                    for number, count, block in self._blocks(pieces, groups[index]):
                        file.write(block)
                        hashed = xxhash.xxh64_hexdigest(block)
                        parts.append((file_id(index, number), count, len(block), hashed))
                body = {"files": self._files, "groups": groups, "blocks": parts}
                end = json.dumps(body).encode()
                file.write(end)
            size = sum(size for _, _, size, _ in parts)
            self._put_files[name] = size, xxhash.xxh64_hexdigest(end)
        self._files, self._held, self._num_keys = [], [], 0

    def _blocks(
        self, held: Sequence[tuple[FileGroupId, pa.Array]], groups: int
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield the number of each file group of an index, how many keys it gets, and a block."""
        places, pieces = zip(*held, strict=True)
        values = [encode_record(index_record(group, self._epoch_ms)) for group in places]
        of_key = np.repeat(np.arange(len(pieces)), [*map(len, pieces)])
        keys, of_key = _sorted(pa.concat_arrays(pieces), of_key)
        numbers = file_groups_of(keys, groups)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            found = keys.filter(pa.array(here))
            records = (values[one] for one in of_key[here])
            yield number, len(found), record_block(self._time, entries_of(found, records))


def _sorted(keys: pa.Array, of_key: Numbers) -> tuple[pa.Array, Numbers]:
    """Sort keys, each once, as an insert may have one several times; `of_key` goes with them."""
    order = as_numpy(pc.sort_indices(keys))
    keys, of_key = keys.take(pa.array(order)), of_key[order]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = as_numpy(pc.not_equal(keys[1:], keys[:-1]))
    return keys.filter(pa.array(first)), of_key[first]

"""The keys that all rows of a table have in an index of rows, some of its file groups at a time.

They may be more than fit into memory. So they are put into a file on the local disk, file slice by
file slice, and those of one file group of the index are read from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Final, TypeAlias

import numpy as np
import pyarrow as pa

from hoodie_ds.metadata_table.payload import Record
from hoodie_ds.metadata_table.record_keys import key_codes
from hoodie_ds.storage.memory_map import mapped_copy
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.timeline import Timeline

OfRows: TypeAlias = Callable[[Table, Timeline], Iterator[tuple[pa.Array, Record]]]
"""Yields the keys (string) of each file slice of a table, and the record that they have."""
KEY: Final = "key"
RECORD: Final = "record"
_CODE: Final = "code"
_SCHEMA: Final = pa.schema({KEY: pa.string(), RECORD: pa.int64(), _CODE: pa.int64()})


@dataclass(frozen=True)
class KeysOfRows:
    """Keys on the local disk, each with the number of its record."""

    records: Sequence[Record]
    num_keys: int
    _file: pa.RecordBatchFileReader

    @classmethod
    def of(
        cls, slices: Iterable[tuple[pa.Array, Record]], hashed: Callable[[str], str] | None = None
    ) -> KeysOfRows:
        """Return the keys of file slices; `hashed` says which part of one is hashed, if not all."""
        records: list[Record] = []
        sizes: list[int] = []

        def write(copy: IO[bytes]) -> None:
            with pa.ipc.new_file(copy, _SCHEMA) as file:
                for keys, record in slices:
                    parts = keys if hashed is None else map(hashed, keys.to_pylist())
                    codes = key_codes(pa.array(parts, pa.string()))
                    numbers = np.full(len(keys), len(records))
                    file.write_batch(pa.record_batch([keys, numbers, codes], schema=_SCHEMA))
                    records.append(record)
                    sizes.append(len(keys))

        file = pa.ipc.open_file(pa.py_buffer(mapped_copy("an index of rows", write)))
        return cls(records, sum(sizes), file)

    def of_group(self, number: int, groups: int) -> pa.Table:
        """Return the keys of one of so many file groups, with the numbers of their records."""
        found = [_SCHEMA.empty_table()]
        for batch in map(self._file.get_batch, range(self._file.num_record_batches)):
            here = batch.column(_CODE).to_numpy() % groups == number
            found.append(pa.Table.from_batches([batch.filter(pa.array(here))]))
        return pa.concat_tables(found).select([KEY, RECORD]).combine_chunks()

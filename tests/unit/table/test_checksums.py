"""Base files are compared with their commit's checksum, whether they are held or read twice."""

from __future__ import annotations

import pytest
import xxhash

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.table.checksums import open_base_file
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.file_slice import BaseFile
from hoodie_ds.testing import MemoryStorage

NAME = BaseFileName("g", "0-1-1", "20250101000000000")
SIZES = pytest.mark.parametrize("size", [1_000, (32 << 20) + 1_000], ids=["held", "read twice"])


def stored(content: bytes, checksum: str | None) -> tuple[MemoryStorage, BaseFile]:
    base = BaseFile("p", NAME, len(content), checksum)
    return MemoryStorage(files={base.path: content}), base


@SIZES
def test_a_file_as_it_was_written_is_read_from_its_beginning(size: int) -> None:
    content = b"PAR1" + bytes(size)
    storage, base = stored(content, xxhash.xxh64_hexdigest(content))
    with open_base_file(storage, base) as source:
        assert source.read(8) == b"PAR1" + bytes(4)
        source.seek(-1, 2)
        assert source.tell() == size + 3


@SIZES
def test_a_byte_that_is_another_is_found_wherever_it_is(size: int) -> None:
    written = bytes(size)
    storage, base = stored(written[:-1] + b"\1", xxhash.xxh64_hexdigest(written))
    with pytest.raises(CorruptFileError, match=base.path), open_base_file(storage, base):
        pytest.fail("it was opened")

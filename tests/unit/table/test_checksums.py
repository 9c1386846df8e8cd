"""Base files are compared with their commit's checksum, whether they are held or read twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scan_plan import PartTask, ScanTask
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.table.checksums import open_base_file, open_footer
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.file_slice import BaseFile
from hoodie_ds.testing import MemoryStorage
from tests.tables import KEY

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


class TwoFiles:
    """A table of a file with the numbers 0 to 9, and one from 10 to 19, of which a byte changes."""

    def __init__(self, folder: Path) -> None:
        options = {"hoodie.table.name": "t", KEY: "id", "hoodie.index.type": "SIMPLE"}
        self.table = HoodieTable(folder, {**options, "hoodie.parquet.small.file.limit": "0"})
        self.folder = folder
        self.first = self._insert(0)
        self._insert(10)

    def _insert(self, start: int) -> Path:
        before = {*self.folder.glob("*.parquet")}
        self.table.insert(pa.table({"id": range(start, start + 10)}))
        (added,) = {*self.folder.glob("*.parquet")} - before
        return added

    def damage(self, at: int) -> None:
        """Change a bit of the first file."""
        content = bytearray(self.first.read_bytes())
        content[at] ^= 1
        self.first.write_bytes(content)

    def ids(self, where: str) -> list[int]:
        return sorted(self.table.read(["id"], where).column("id").to_pylist())


def test_a_file_is_compared_no_further_than_the_footer_that_rules_it_out(tmp_path: Path) -> None:
    place = TwoFiles(tmp_path)
    place.damage(0)  # Parquet's magic, which no page has
    assert place.ids("id >= 10") == [*range(10, 20)]
    assert place.table.delete(where="id = 12").deleted == 1
    for where in ("id = 9", "id >= 0"):
        with pytest.raises(CorruptFileError, match=place.first.name):
            place.ids(where)
    with pytest.raises(CorruptFileError, match=place.first.name):
        place.table.delete(where="id = 9")


def test_a_greatest_value_that_is_another_rules_out_no_rows(tmp_path: Path) -> None:
    place = TwoFiles(tmp_path)
    greatest = place.first.read_bytes().rindex((9).to_bytes(8, "little"))
    place.damage(greatest)  # it is 8
    assert pq.read_metadata(place.first).row_group(0).column(5).statistics.max == 8
    with pytest.raises(CorruptFileError, match=place.first.name):
        place.ids("id >= 9")


def test_the_reader_of_the_first_of_several_parts_compares_all(tmp_path: Path) -> None:
    place = TwoFiles(tmp_path)
    place.damage(0)
    pinned = PinnedTable.latest(open_storage(str(tmp_path)))
    plan = SnapshotQuery(pinned).plan(predicate_of("id = 12", pinned.schema))
    (first,) = (task.slice for task in plan.tasks if task.slice.files[0].path == place.first.name)
    assert not [*plan.executor.read(ScanTask(first), ["id"])]
    assert not [*plan.executor.read(PartTask(first, 1, 2), ["id"])]
    with pytest.raises(CorruptFileError, match=place.first.name):
        list(plan.executor.read(PartTask(first, 0, 2), ["id"]))


@pytest.mark.parametrize("size", [0, 7, 8, 40])
def test_a_file_that_is_cut_short_has_no_footer(tmp_path: Path, size: int) -> None:
    place = TwoFiles(tmp_path)
    base = BaseFile("", NAME, size, "0" * 16, footer="0" * 16)
    (tmp_path / base.path).write_bytes(b"PAR1" * 10 if size == 40 else bytes(size))
    with pytest.raises(CorruptFileError), open_footer(open_storage(str(tmp_path)), base):
        pytest.fail(f"{place.first} was opened")


@SIZES
def test_all_bytes_are_compared_where_the_footer_has_no_checksum(size: int) -> None:
    written = bytes(size)
    storage, base = stored(written[:-1] + b"\1", xxhash.xxh64_hexdigest(written))
    with pytest.raises(CorruptFileError, match=base.path), open_footer(storage, base):
        pytest.fail("it was opened")


def test_a_large_file_is_compared_at_first_by_its_footer() -> None:
    footer = b"metadata" + (8).to_bytes(4, "little") + b"PAR1"
    content = bytes((32 << 20) + 1_000) + footer
    storage, base = stored(b"\1" + content[1:], xxhash.xxh64_hexdigest(content))
    base = replace(base, footer=xxhash.xxh64_hexdigest(footer))
    with open_footer(storage, base) as (source, check):
        assert source.seek(0, 2) == len(content)
        with pytest.raises(CorruptFileError, match=base.path):
            check()

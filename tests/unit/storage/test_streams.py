from __future__ import annotations

from zipfile import ZipFile

from hoodie_ds.storage.protocol import Upload
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.storage.streams import output_in_parts
from hoodie_ds.testing import MemoryStorage


def test_inputs_are_seekable() -> None:
    storage = RetryingStorage(MemoryStorage(), 0)
    with storage.open_output("f.zip") as output, ZipFile(output, "w") as archive:
        archive.writestr("member", b"0123456789")
    with storage.open_input("f.zip") as file, ZipFile(file) as archive:
        assert file.readable()
        with archive.open("member") as member:
            member.seek(7)
            assert member.read() == b"789"


def test_an_output_in_parts_says_how_much_it_has() -> None:
    stored: list[bytes] = []

    def begin() -> Upload:
        raise AssertionError("a small file is stored whole")

    with output_in_parts(stored.append, begin) as output:
        output.write(b"01234")
        assert output.tell() == 5
    assert stored == [b"01234"]

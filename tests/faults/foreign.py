"""What other engines do to a table of ours, file by file: for tests of a neighbourhood."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie_ds.storage.protocol import Storage


def savepoint(storage: Storage, time: str) -> None:
    """Keep a commit, as Hudi's savepoint does: two files of its time, and no request."""
    for state in (".inflight", ""):
        storage.put_if_absent(f".hoodie/{time}.savepoint{state}", b"")


def archive(storage: Storage, times: Iterable[str]) -> None:
    """Take instants off the active timeline."""
    gone = set(times)
    for status in storage.list(".hoodie"):
        if status.path.rpartition("/")[2].partition(".")[0] in gone:
            storage.delete(status.path)

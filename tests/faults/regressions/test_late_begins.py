"""A commit of version 6 is begun late, at an earlier time than one that a stream has chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.query_options import IncrementalOptions
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import TimelineError
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.reader.table_stream import TableStream
from hoodie_ds.storage.local import LocalStorage
from tests.tables import TRIPS, VERSION, trips


@pytest.mark.parametrize("changes", [False, True])
def test_a_batch_sees_every_decided_commit(changes: bool, tmp_path: Path) -> None:
    """The rows behind the late commit were left out of the batch, and never came again."""
    table = HoodieTable(tmp_path / "t", {**TRIPS, VERSION: "6"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 1, 1.0)))
    storage = LocalStorage(str(tmp_path / "t"))
    given = {
        "path": str(tmp_path / "t"),
        **({IncrementalOptions.format.key: "cdc"} if changes else {}),
    }
    stream = TableStream(storage, ReadOptions.parse(given, is_stream=True))
    start = stream.initial()
    until = stream.next(start)
    late = int(table.timeline.commits[0].time) + 1  # as of a writer whose clock is behind
    names = [f".hoodie/{late}.{state}" for state in ("commit.requested", "inflight")]
    for name in names:
        storage.put_if_absent(name, b"")
    with pytest.raises(TimelineError, match=f"{late}.* may still be completed"):
        stream.query(start, until)
    for name in reversed(names):
        storage.delete(name)
    assert Scanner(stream.query(start, until)).to_table().num_rows == 2

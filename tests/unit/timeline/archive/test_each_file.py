"""Questions to an archive whose files another archiver merges in the middle of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.inspection.archived_instants import archived_backwards
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.testing.fault import Operation
from hoodie_ds.testing.faulty_storage import FaultyStorage
from hoodie_ds.timeline.archive.archive import archive_of, archived_writes
from hoodie_ds.timeline.archive.archived_timeline import (
    archive_files,
    put_archive_file,
    read_archive_file,
)
from hoodie_ds.timeline.archive.lsm_snapshot import newest_snapshot
from hoodie_ds.timeline.loading import is_archived, load_timeline, read_commit
from hoodie_ds.timeline.timeline import Timeline
from tests.tables import VERSION
from tests.unit.timeline.archive.test_archive import commit, time

FOLDER: Final = ".hoodie/archived"
NUMBERS: Final = range(1, 6)
QUESTIONS: dict[str, Callable[[Storage, int], object]] = {
    "the newest write": lambda storage, layout: archive_of(
        storage, layout, "archived"
    ).newest_write(),
    "writes": lambda storage, layout: {
        i.time for i, _ in archive_of(storage, layout, "archived").writes_backwards()
    },
    "replaced": lambda storage, layout: set(
        archive_of(storage, layout, "archived").replaced(time(9))
    ),
    "archived writes": lambda storage, layout: archived_writes(
        storage, Timeline(layout=layout), "archived"
    ),
    "whether they are archived": lambda storage, layout: [
        is_archived(storage, timeline, time(n))
        for timeline in [load_timeline(storage, layout)]
        for n in NUMBERS
    ],
    "what they did": lambda storage, layout: [
        read_commit(storage, commit(layout, n, *_replaced(n))[0].step).replaced for n in NUMBERS
    ],
    "all instants": lambda storage, _: sorted(
        one.instant.time for one in archived_backwards(open_table(storage))
    ),
}


def _replaced(number: int) -> list[str]:
    return [f"f{number}"] if number % 2 else []


def _archived(layout: int) -> MemoryStorage:
    """A table, and an archive of five files."""
    storage = MemoryStorage()
    options = {"hoodie.table.name": "t", VERSION: {1: "6", 2: "9"}[layout]}
    HoodieTable("memory://t", options, storage=storage).insert(pa.table({"row": [1]}))
    archive = archive_of(storage, layout, "archived")
    for number in NUMBERS:
        archive.put([commit(layout, number, *_replaced(number))])
    return storage


def _merge(storage: MemoryStorage, layout: int) -> None:
    """Merge all files of the archive, and delete them at once."""
    if layout == 1:
        files = archive_files(storage, FOLDER).values()
        entries = [entry for path in files for entry in read_archive_file(storage, path)]
        put_archive_file(storage, FOLDER, entries, 10)
        old = list(files)
    else:
        before = newest_snapshot(storage).files
        archive_of(storage, layout, "archived", files_per_level=2).tidy(frozenset())
        left = newest_snapshot(storage).files
        old = [file.path for file in before if file not in left]
        assert old
    for path in old:
        storage.delete(path)


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("which", NUMBERS)
def test_no_instant_is_missed_whichever_file_is_read_when_they_are_merged(
    which: int, question: str, layout: int
) -> None:
    ask = QUESTIONS[question]
    right = ask(_archived(layout), layout)
    assert right
    storage, read = _archived(layout), []

    def before_each(operation: Operation) -> None:
        if operation.path.endswith(".parquet") or ".commits_.archive" in operation.path:
            read.append(operation.path)
            if len(read) == which:
                _merge(storage, layout)

    assert ask(FaultyStorage(storage, before_each=before_each), layout) == right
    assert read

"""What instants of Apache Hudi say of files, all together, is what it has left on storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.storage.connect import storage_to_read
from hoodie_ds.table.file_name import BaseFileName, CdcFileName, LogFileName
from hoodie_ds.timeline.archive.archive import archived_writes
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import State
from tests.golden.golden_tables import golden_names, unzip_table

_KINDS = (BaseFileName, CdcFileName, LogFileName)


@pytest.mark.parametrize("name", golden_names())
def test_instants_tell_which_files_are_there(name: str, tmp_path: Path) -> None:
    base = unzip_table(name, tmp_path)
    table = HoodieTable(base)
    timeline = table.timeline
    storage = storage_to_read(WriteOptions.parse({"path": str(base)}))
    if timeline.pending or archived_writes(storage, timeline, table.properties.archive_folder):
        return
    listed = {
        path.relative_to(base).as_posix()
        for path in base.rglob("*")
        if any(kind.parse(path.name) for kind in _KINDS) and ".hoodie" not in path.parts
    }
    found: set[str] = set()
    done = {i for i in (*timeline.completed, *timeline.rollbacks) if i.state is State.COMPLETED}
    for instant in sorted(done):
        changes = file_changes(storage, instant)
        found |= {path for stat in changes.added.values() for path in stat.paths if path}
        found = (found | set(changes.marked)) - changes.deleted - changes.removed
    assert found == listed

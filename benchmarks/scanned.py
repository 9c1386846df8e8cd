"""What the benchmarks of scans share: the base files of a table, and a table that is new."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.connect import open_storage


def base_files(path: Path) -> list[str]:
    """The paths of a table's base files."""
    slices = PinnedTable.latest(open_storage(str(path), for_write=False)).slices()
    return [f"{path}/{s.base.path}" for s in slices if s.base is not None]


def fresh(path: Path) -> Path:
    """The same table under a path that no process has seen; its files are linked."""
    found = path.with_name(f"fresh-{path.name}-{time.time_ns()}")
    shutil.copytree(path, found, copy_function=os.link)
    return found

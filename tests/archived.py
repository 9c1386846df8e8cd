"""What an archive holds, of whatever timeline layout; of layout 2 as Hudi reads it, by pyarrow."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow.parquet as pq

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.archive.archived_timeline import archived_instants
from hoodie_ds.timeline.archive.lsm_writer import LsmEntry
from hoodie_ds.timeline.instant import Action, Instant, State

HISTORY = ".hoodie/timeline/history"


def archived(storage: Storage) -> list[Instant]:
    """The instants in a table's archive, by time, as often as it has them."""
    rows = sorted(rows_of(storage), key=lambda row: str(row["instantTime"]))
    return [*archived_instants(storage, ".hoodie/archived"), *(e.instant for e in entries(rows))]


def rows_of(storage: Storage) -> list[dict[str, Any]]:
    """The rows of an archive of layout 2: the version, its manifest, and the files of that.

    Where there is no version, Hudi takes the newest manifest.
    """
    names = [status.path.rpartition("/")[2] for status in storage.list(HISTORY)]
    numbers = [name.partition("_")[2] for name in names if name.startswith("manifest_")]
    number = max(numbers, key=int, default="")
    if "_version_" in names:
        number = storage.read(f"{HISTORY}/_version_").decode()
    if not number:
        return []
    manifest = json.loads(storage.read(f"{HISTORY}/manifest_{number}"))
    bodies = [storage.read(f"{HISTORY}/{file['fileName']}") for file in manifest["files"]]
    assert [len(body) for body in bodies] == [file["fileLen"] for file in manifest["files"]]
    return [row for body in bodies for row in pq.read_table(io.BytesIO(body)).to_pylist()]


def entries(rows: Iterable[Mapping[str, Any]]) -> list[LsmEntry]:
    """What rows of an archive of layout 2 say, as our writer takes it."""
    return [
        LsmEntry(
            Instant(
                row["instantTime"],
                Action(row["action"]),
                State.COMPLETED,
                layout=2,
                completion_time=row["completionTime"],
            ),
            row["metadata"] or b"",
            row["plan"] or b"",
        )
        for row in rows
    ]

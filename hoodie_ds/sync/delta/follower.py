"""The Delta log of a table as its follower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from hoodie_ds.config.service_switches import Service
from hoodie_ds.environment import Clock, IdSource
from hoodie_ds.sync.delta.columns import check_columns
from hoodie_ds.sync.delta.sync import DeltaSync, sync
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """A Delta log over the table's base files; see `hoodie_ds.sync.followers.Follower`."""

    service: ClassVar[Service] = Service.DELTA
    names_files: ClassVar[bool] = True

    clock: Clock
    ids: IdSource

    def check(self, columns: pa.Schema) -> None:
        """Refuse columns of types that Delta lacks."""
        check_columns(columns)

    def before(self, table: Table, completed: Instant, changes: FileChanges) -> None:
        """Do nothing: a version of the log has only visible commits."""

    def after(self, table: Table, timeline: Timeline | None = None) -> None:
        """Put a version with the commits since the newest one."""
        sync(table, self.clock, self.ids)  # loads the timeline after the log's newest version

    def repair(self, table: Table, *, dry: bool = False) -> DeltaSync:
        """Compare the whole table with the whole log."""
        return sync(table, self.clock, self.ids, whole=True, dry=dry)

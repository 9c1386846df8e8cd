"""A table's timeline, formatted for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.table import Table

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import TableNotFoundError
from hoodie_ds.sink.commit.commit_record import ROWS_KEY
from hoodie_ds.storage.connect import storage_to_read
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import open_table
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant, State
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class TimelineReport:
    """Formats a table's timeline."""

    storage: Storage

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TimelineReport:
        """Return the report of the table that options name by ``path``."""
        parsed = WriteOptions.parse(options)
        return cls(storage_to_read(parsed))

    def latest(self) -> str:
        """The time of the latest completed commit; ``none`` if there is none."""
        commit = next(self._timeline().commits_backwards(), None)
        return "none" if commit is None else commit.time

    def table(self) -> Table:
        """All instants of the active timeline: time, action, state and rows that came in."""
        shown = Table("time", "action", "state", title="Timeline", title_justify="left")
        shown.add_column("rows", justify="right")
        timeline = self._timeline()
        for instant in sorted(timeline.instants):
            shown.add_row(
                instant.time, instant.action.value, instant.state.value, self._rows(instant)
            )
        return shown

    def _timeline(self) -> Timeline:
        try:
            return open_table(self.storage).load_timeline()
        except TableNotFoundError:
            return Timeline()

    def _rows(self, instant: Instant) -> str:
        if instant.state is not State.COMPLETED or instant.action not in WRITE_ACTIONS:
            return ""
        commit = read_commit(self.storage, instant)
        ours = commit.extra.get(ROWS_KEY)
        if ours is not None:
            return f"{int(ours):,}"
        changed = (s.num_inserts + s.num_update_writes + s.num_deletes for s in commit.stats)
        return f"{sum(changed):,}"

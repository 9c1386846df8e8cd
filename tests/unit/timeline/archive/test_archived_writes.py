"""Writes of the archive alone."""

from __future__ import annotations

import pytest

from hoodie_ds.errors import NotFoundError
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.archive import archived_writes as module
from hoodie_ds.timeline.archive.archived_writes import archived_writes
from hoodie_ds.timeline.timeline import Timeline


def test_files_that_come_and_go_each_time_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise NotFoundError("merged into another")

    monkeypatch.setattr(module, "newest_snapshot", gone)
    with pytest.raises(NotFoundError, match="come and go; try again"):
        archived_writes(MemoryStorage(), Timeline(layout=2), "history")

"""What a service by hand says of itself: in its result, on one line, and in the log."""

from __future__ import annotations

import logging

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.service_switches import Service
from hoodie_ds.services.results import ServiceResult, Work, size_text, work_of
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from hoodie_ds.timeline.instant import Action, Instant, State
from tests.tables import BUCKETS, TRIPS, TYPE, trips

ROWS = (("a", "x", 1, 1.0), ("b", "x", 1, 2.0), ("c", "y", 1, 3.0))
CLOCK = SimClock()


def _table(**options: str) -> tuple[MemoryStorage, HoodieTable]:
    storage = MemoryStorage(clock=CLOCK)
    given = {**TRIPS, BUCKETS: "1", **options}
    table = HoodieTable("memory://t", given, storage=storage, clock=CLOCK, ids=SimIds())
    table.upsert(trips(*ROWS))
    return storage, table


def _data(storage: MemoryStorage) -> dict[str, int]:
    return {p: len(data) for p, data in storage.files.items() if p.endswith(".parquet")}


def _logged(caplog: pytest.LogCaptureFixture) -> str:
    (line,) = (record.message for record in caplog.records if record.levelno == logging.INFO)
    caplog.clear()
    return line


def _last_logged(caplog: pytest.LogCaptureFixture) -> str:
    """What is logged behind the lines of single instants."""
    *_, line = (record.message for record in caplog.records if record.levelno == logging.INFO)
    caplog.clear()
    return line


def test_a_compaction_reports_what_it_wrote(caplog: pytest.LogCaptureFixture) -> None:
    storage, table = _table(**{TYPE: "MERGE_ON_READ"})
    table.upsert(trips(("a", "x", 2, 9.0), ("d", "x", 1, 1.0)))
    before = _data(storage)
    caplog.set_level(logging.INFO, "hoodie_ds")
    would = table.compact(dry=True)
    assert would.work == Work(1)
    assert repr(would) == "<ServiceResult: dry compaction new, 1 file would be written>"
    assert repr(would[0]) == "<Compaction not planned yet: 1 file group, 1 log file>"
    assert repr(would[0].plan) == "<CompactionPlan: 1 file groups, 1 log files>"
    assert not caplog.messages
    done = table.compact()
    (written,) = (size for path, size in _data(storage).items() if path not in before)
    assert done.work == Work(1, written, 3)
    told = f"1 file written ({size_text(written)}, 3 rows)"
    assert str(done) == f"compaction {done.times[0]}, {told}, 0 ms"
    assert _logged(caplog) == f"{storage.root}: compaction {done.times[0]}: {told}"
    assert repr(table.compact()) == "<ServiceResult: compaction, nothing to do>"
    assert not caplog.messages


def test_a_clustering_reports_what_it_wrote(caplog: pytest.LogCaptureFixture) -> None:
    new_files = {"hoodie.parquet.small.file.limit": "0"}
    storage, table = _table(**{"hoodie.index.type": "SIMPLE", **new_files})
    table.insert(trips(("d", "x", 1, 1.0)))
    before = _data(storage)
    caplog.set_level(logging.INFO, "hoodie_ds")
    (would,) = table.cluster(dry=True)
    assert repr(would) == "<Clustering not planned yet: 2 file groups in 1 group>"
    assert repr(would.plan) == "<ClusteringPlan: 2 file groups in 1 groups>"
    assert not caplog.messages
    done = table.cluster()
    (written,) = (size for path, size in _data(storage).items() if path not in before)
    assert done.work == Work(1, written, 3)
    told = f"1 file written ({size_text(written)}, 3 rows)"
    assert _logged(caplog) == f"{storage.root}: clustering {done.times[0]}: {told}"
    assert repr(table.cluster()) == "<ServiceResult: clustering, nothing to do>"


def test_cleaning_and_archiving_report_what_they_deleted(caplog: pytest.LogCaptureFixture) -> None:
    storage, table = _table()
    for ts in (2, 3, 4):
        table.upsert(trips(("a", "x", ts, 1.0)))
    before = storage.files
    caplog.set_level(logging.INFO, "hoodie_ds")
    few = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2"}
    done = table.clean(few)
    gone = [len(data) for path, data in before.items() if path not in storage.files]
    assert done.work == Work(files_deleted=2, bytes_deleted=sum(gone))
    (one,) = done
    time = one.instant_time
    assert repr(one) == f"<Cleaning {time}: 2 files in 1 partition, KEEP_LATEST_COMMITS>"
    assert repr(one.plan) == "<CleanerPlan: 2 files in 1 partitions, KEEP_LATEST_COMMITS>"
    told = f"2 files deleted ({size_text(sum(gone))})"
    assert _logged(caplog) == f"{storage.root}: clean {time}: {told}"
    before = storage.files
    archived = table.archive({**few, "hoodie.keep.max.commits": "3"})
    gone = [len(data) for path, data in before.items() if path not in storage.files]
    assert archived.work == Work(files_deleted=len(gone), bytes_deleted=sum(gone))
    told = f"{len(gone)} files deleted ({size_text(sum(gone))})"
    up_to = f"of 2 instants up to {archived.times[-1]}"
    assert _logged(caplog) == f"{storage.root}: archive {up_to}: {told}"
    assert repr(table.archive()) == "<ServiceResult: archive, nothing to do>"
    assert repr(table.clean()) == "<ServiceResult: clean, nothing to do>"
    assert not caplog.messages


def test_rollbacks_restores_and_savepoints_report_their_effect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage, table = _table()
    first = table.timeline.commits[0].time
    size = size_text(sum(_data(storage).values()))
    caplog.set_level(logging.INFO, "hoodie_ds")
    kept = table.savepoint()
    assert repr(kept) == f"<Savepoint {first}: 2 files ({size})>"
    assert _logged(caplog) == f"{storage.root}: savepoint {kept}"
    for ts in (2, 3, 4):
        table.upsert(trips(("a", "x", ts, 1.0)))
    undone = table.rollback()
    told = f"<Undoing: back to {undone.target}, without {undone.losses[0].time} commit, 1 file"
    assert repr(undone).startswith(told)
    assert repr(undone).endswith("1 row lost>")
    assert _last_logged(caplog) == f"{storage.root}: rolled {undone}"
    restored = table.restore(kept)
    assert restored
    assert repr(restored).startswith(f"<Undoing: back to {first}, without 2 instants, 2 files")
    assert _last_logged(caplog) == f"{storage.root}: restored {restored}"
    again = table.restore(kept, dry=True)
    assert not again
    assert repr(again) == f"<Undoing: back to {first}, nothing to do>"
    table.delete_savepoint(kept)
    assert _logged(caplog) == f"{storage.root}: savepoint deleted, {kept}"
    table.overwrite(trips(("z", "x", 1, 1.0)))
    assert str(table.rollback(dry=True)).endswith("1 row lost, 2 file groups back")
    table.rollback()
    everything = table.rollback(dry=True)
    assert repr(everything).startswith(f"<Undoing: back to the empty table, without {first}")


def test_many_instants_are_shown_by_the_first_and_the_last() -> None:
    instants = tuple(Instant(f"2025010{n}", Action.COMMIT, State.COMPLETED) for n in range(1, 6))
    result = ServiceResult(Service.ARCHIVE, instants, Work(files_deleted=15), duration_ms=7)
    said = "archive of 5 instants, 20250101 to 20250105, 15 files deleted, 7 ms"
    assert str(result) == said
    assert list(result[:2]) == list(instants[:2])
    assert result[-1] is instants[-1]
    few = ServiceResult(Service.ARCHIVE, instants[:2])
    assert str(few) == "archive 20250101 20250102, no files, 0 ms"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (1023, "1,023 bytes"), (1536, "1.5 KB"), (3 << 40, "3.0 TB")],
)
def test_sizes_are_formatted_for_people(size: int, text: str) -> None:
    assert size_text(size) == text
    assert size_text(5 << 50) == "5,120.0 TB"


def test_an_instant_rolled_back_since_has_written_nothing() -> None:
    storage, _ = _table()
    assert work_of(open_table(storage), "20200101000000000") == Work()

"""Numbers that say too little: batches that were passed over, forgotten, or missed.

Named for what went wrong; each failed before its mend.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.limits import Limits
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    CorruptFileError,
    HoodieError,
    MissedBatchesError,
    ReplayMismatchError,
)
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds, check_table, forget_process
from hoodie_ds.timeline.bodies.commit_metadata import INPUTS_KEY
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import DECISIONS, WRITERS, commit_path, writer_folder
from tests.tables import TRIPS, trips

WRITER = "hoodie.datasource.write.streaming.checkpoint.identifier"
NUMBER = "hoodie.datasource.write.batch.identifier"
ACCEPT = "hoodie.py.replay.accept.different"
ACCEPT_MISSED = "hoodie.py.stream.accept.missed.batches"
SPAN = "hoodie.streaming.batches.per.commit"
CARRIED = 20
USUAL = Limits()


class Place:
    """A table in memory and the processes that write to it."""

    def __init__(self, name: str, limits: Limits = USUAL, /, **options: str) -> None:
        forget_process()
        self.storage = MemoryStorage(f"memory://replay-identity-{name}")
        self.options = {**TRIPS, **options}
        self.clock, self.stage, self.limits = SimClock(), 0, limits

    def stream(
        self, batch_id: BatchId, rows: pa.Table, options: Mapping[str, str] | None = None
    ) -> None:
        """A micro-batch, in a process of its own."""
        self.stage += 1
        given = {**self.options, "path": self.storage.root, **(options or {})}
        storage = cast(Storage, self.storage)
        ids = SimIds(f"{batch_id} {self.stage}")
        limited = replace(WriteOptions.parse(given), limits=self.limits)
        coordinator = Coordinator(limited, storage, self.clock, ids)
        batch = coordinator.begin(rows.schema)
        task = TaskId(0, self.stage, self.stage)
        coordinator.commit([write_task(batch, task, batch_id, rows.to_batches(), True, self.clock)])

    @property
    def table(self) -> HoodieTable:
        ids = SimIds(f"table {self.stage}")
        return HoodieTable(
            self.storage.root, self.options, storage=cast(Storage, self.storage), clock=self.clock,
            ids=ids,
        )  # fmt: skip

    def numbered(self, writer: str, number: int, rows: pa.Table, **more: str) -> None:
        self.stage += 1
        self.table.upsert(rows, {WRITER: writer, NUMBER: str(number), **more})

    def refuses(self, error: type[HoodieError], batch_id: BatchId, rows: pa.Table) -> str:
        before = dict(self.storage.files)
        with pytest.raises(error) as raised:
            self.stream(batch_id, rows)
        assert dict(self.storage.files) == before
        return str(raised.value)

    @property
    def ids(self) -> list[str]:
        return sorted(self.table.read(["id"])["id"].to_pylist())

    @property
    def newest(self) -> Any:
        storage = cast(Storage, self.storage)
        return read_commit(storage, load_timeline(storage, 1).commits[-1])


def row(key: str, fare: float = 0.0) -> pa.Table:
    return trips((key, "x", 1, fare))


def test_a_new_checkpoint_under_an_old_name_was_passed_over() -> None:
    place = Place("checkpoint")
    for number in range(30):
        place.stream(BatchId("trips", number), row(f"old{number}"))
    for number in (0, 19, 20, 29):
        text = place.refuses(ReplayMismatchError, BatchId("trips", number), row("new"))
        assert WRITER in text
    # With the checkpoint's identity it is a new query, and all of it is written.
    fresh = [BatchId("trips/b", number, formerly="other") for number in range(12)]
    for batch_id in fresh:
        place.stream(batch_id, row(f"new{batch_id.batch_id}"))
    assert sum(key.startswith("new") for key in place.ids) == len(fresh)


def test_a_number_that_was_never_written_was_passed_over() -> None:
    place = Place("late number")
    for number in range(20, 32):
        place.numbered("nightly", number, row(f"r{number}"))
    place.numbered("nightly", 40, row("r40"))
    for late in (7, 35):
        with pytest.raises(ReplayMismatchError, match="number greater than 40"):
            place.numbered("nightly", late, row("late"))
    with pytest.raises(ReplayMismatchError, match="no rows were ever written under its number"):
        place.numbered("nightly", 35, row("late"), **{ACCEPT: "true"})
    with pytest.raises(ReplayMismatchError, match="knows the rows of only 23 to 40"):
        place.numbered("nightly", 20, row("r20"))
    place.numbered("nightly", 20, row("r20"), **{ACCEPT: "true"})
    assert "late" not in place.ids


def test_an_overwrite_with_nothing_was_passed_over_under_a_number_left_out() -> None:
    place = Place("empty overwrite")
    place.numbered("nightly", 1, row("a"))
    place.numbered("nightly", 3, row("b"))
    with pytest.raises(ReplayMismatchError):
        place.table.overwrite(row("a").slice(0, 0), {WRITER: "nightly", NUMBER: "2"})
    assert place.ids == ["a", "b"]


def test_other_values_under_the_same_keys_were_passed_over() -> None:
    place = Place("values")
    place.numbered("n", 1, row("a", 1.0))
    place.numbered("n", 1, row("a", 1.0))
    for other in (2.0, -1.0, 0.0):
        with pytest.raises(ReplayMismatchError, match="came again"):
            place.numbered("n", 1, row("a", other))


def test_digests_of_earlier_releases_are_compared_on_the_keys_that_they_cover() -> None:
    place = Place("old digests")
    place.stream(BatchId("q", 0), row("a", 1.0))
    storage = cast(Storage, place.storage)
    instant = load_timeline(storage, 1).commits[-1]
    keys = InputDigest.of(pa.table({"id": ["a"]}))
    text = json.dumps({"q": {"0": f"1-{keys.checksum:016x}"}})
    storage.replace(commit_path(instant), place.newest.with_extra({INPUTS_KEY: text}).to_bytes(1))
    read_commit.cache_clear()
    place.stream(BatchId("q", 0), row("a", 2.0))  # the keys are all that is known
    assert place.refuses(ReplayMismatchError, BatchId("q", 0), row("b")).count("checksum") == 2
    place.stream(BatchId("q", 1), row("b"))
    place.stream(BatchId("q", 0), row("a", 1.0))
    place.refuses(ReplayMismatchError, BatchId("q", 1), row("b", 5.0))


def test_batches_stored_under_the_name_alone_are_recognised_with_the_checkpoint() -> None:
    place = Place("old name")
    for number in range(3):
        place.stream(BatchId("trips", number), row(f"k{number}"))

    def named(number: int, query: str = "trips/a") -> BatchId:
        return BatchId(query, number, formerly="trips")

    before = dict(place.storage.files)
    place.stream(named(2), row("k2"))  # Spark died before its commit log, and was upgraded
    assert dict(place.storage.files) == before
    place.refuses(ReplayMismatchError, named(2), row("other"))
    place.stream(named(3), row("k3"))
    place.stream(named(2), row("k2"))
    place.refuses(ReplayMismatchError, named(2), row("other"))
    place.stream(named(0, "trips/b"), row("new"))  # a new checkpoint
    assert place.ids == ["k0", "k1", "k2", "k3", "new"]
    assert json.loads(place.newest.extra["_hudi_streaming_sink_checkpoint"]) == {
        "trips/a": "3",
        "trips/b": "0",
    }


def test_commits_grew_with_every_writer_that_ever_wrote() -> None:
    place, count = Place("growth"), 2 * CARRIED + 5
    sizes = []
    for number in range(count):
        place.numbered(f"load {number:03}", 5, row("a", float(number)))
        sizes.append(len(place.newest.to_bytes(1)))
    assert max(sizes[CARRIED:]) - min(sizes[CARRIED:]) < 50
    decisions = [
        len(body) for path, body in place.storage.files.items() if path.startswith(DECISIONS)
    ]
    assert max(decisions) < 1.1 * min(decisions)
    assert len(json.loads(place.newest.extra[INPUTS_KEY])) == CARRIED
    before = dict(place.storage.files)
    for number in (0, 24, 25, 44):  # put aside, and carried
        place.numbered(f"load {number:03}", 5, row("a", float(number)))
        with pytest.raises(ReplayMismatchError):
            place.numbered(f"load {number:03}", 5, row("a", 99.0))
        with pytest.raises(ReplayMismatchError):
            place.numbered(f"load {number:03}", 4, row("a", float(number)))
    assert dict(place.storage.files) == before
    assert not check_table(place.storage.files, settled=True, buckets=True)


def test_an_inactive_writer_resumes_and_becomes_inactive_again() -> None:
    place = Place("put aside")

    def others(name: str) -> None:
        for number in range(CARRIED):
            place.numbered(f"{name} {number}", 0, row("o", float(number)))

    place.stream(BatchId("q", 0), row("a"))
    others("one")
    assert "q" not in place.newest.extra[INPUTS_KEY]
    place.stream(BatchId("q", 0), row("a"))
    place.stream(BatchId("q", 1), row("b"))
    assert sorted(json.loads(place.newest.extra[INPUTS_KEY])["q"]) == ["0", "1"]
    others("two")
    stored = [path for path in place.storage.files if path.startswith(writer_folder("q"))]
    assert [path[-19:] for path in stored] == [f"{number:019}" for number in (0, 1)]
    for number, key in enumerate("ab"):
        place.stream(BatchId("q", number), row(key))
        place.refuses(ReplayMismatchError, BatchId("q", number), row("other"))
    place.storage.replace(stored[-1], b"no json")
    with pytest.raises(CorruptFileError, match="does not say what a writer has committed"):
        place.stream(BatchId("q", 2), row("c"))


@pytest.mark.parametrize("span", ["1", "3"])
def test_a_stream_lost_the_rows_of_a_table_that_was_deleted(span: str) -> None:
    place = Place(f"deleted {span}", **{SPAN: span})
    for number in range(7):
        place.stream(BatchId("q", number), row(f"k{number}"))
    fresh = Place(f"fresh {span}", **{SPAN: span})
    for rows in (row("k7"), row("k7").slice(0, 0)):
        text = fresh.refuses(MissedBatchesError, BatchId("q", 7), rows)
        for named in ("batch 7 of query q", "batches 0 to 6", fresh.storage.root, ACCEPT_MISSED):
            assert named in text
    fresh.stream(BatchId("other", 0), row("o"))
    assert "has not seen batch 0 of" in fresh.refuses(MissedBatchesError, BatchId("q", 1), row("k"))
    fresh.stream(BatchId("q", 7), row("k7"), {ACCEPT_MISSED: "true"})
    for number in range(8, 12):
        fresh.stream(BatchId("q", number), row(f"k{number}"))
    assert "k7" in fresh.ids


@pytest.mark.parametrize("undo", ["rollback", "restore"])
@pytest.mark.parametrize("span", ["1", "2"])
def test_a_stream_continued_without_its_rolled_back_batches(undo: str, span: str) -> None:
    place = Place(f"taken back {undo} {span}", **{SPAN: span})
    for number in range(8):
        place.stream(BatchId("q", number), row(f"k{number}"))
    kept = 6 // int(span)
    commits = [i.time for i in load_timeline(cast(Storage, place.storage), 1).commits]
    if undo == "restore":
        place.table.restore(commits[kept - 1])
    else:
        for _ in commits[kept:]:
            place.table.rollback()
    assert place.ids == [f"k{number}" for number in range(6)]
    text = place.refuses(MissedBatchesError, BatchId("q", 8), row("k8"))
    for named in ("batch 8 of query q", "batch 6 of the query", place.storage.root, ACCEPT_MISSED):
        assert named in text
    assert "batch 6 of" in place.refuses(MissedBatchesError, BatchId("q", 7), row("k7"))
    place.stream(BatchId("other", 0), row("o"))  # of which nothing was taken back
    place.stream(BatchId("q", 6), row("k6"))
    assert "batch 7 of" in place.refuses(MissedBatchesError, BatchId("q", 8), row("k8"))
    for number in (7, 8, 10, 11):  # 9 has no rows, and is no commit
        place.stream(BatchId("q", number), row(f"k{number}"))
    if span == "1":
        place.table.rollback()
        place.stream(BatchId("q", 12), row("k12"), {ACCEPT_MISSED: "true"})
        place.stream(BatchId("q", 13), row("k13"))
        assert "k13" in place.ids


def test_rolled_back_batches_are_no_longer_known() -> None:
    place = Place("damaged note")
    for number in range(3):
        place.stream(BatchId("q", number), row(f"k{number}"))
    place.table.rollback()
    (note,) = (path for path in place.storage.files if "/taken_back/" in path)
    place.storage.replace(note, b"[]")
    with pytest.raises(CorruptFileError, match="which batches were rolled back"):
        place.stream(BatchId("q", 3), row("k3"))
    place.storage.delete(note)
    place.stream(BatchId("q", 3), row("k3"))


@pytest.mark.parametrize("span", ["1", "3"])
def test_a_stream_whose_first_batches_had_no_rows_continues(span: str) -> None:
    place = Place(f"no rows {span}", **{SPAN: span})
    nothing = row("a").slice(0, 0)
    for number in range(3):
        place.stream(BatchId("q", number), nothing)
    assert [path for path in place.storage.files if path.startswith(WRITERS)]
    for number in range(3, 9):
        place.stream(BatchId("q", number), row(f"k{number}"))
    assert "k3" in place.ids
    place.refuses(ReplayMismatchError, BatchId("q", 3), row("other"))
    for number in range(CARRIED):
        place.numbered(f"load {number}", 7, row("o", float(number)), **{SPAN: "1"})
    left = [path for path in place.storage.files if path.startswith(writer_folder("q"))]
    assert sum(path.endswith(f"{8:019}") for path in left) == 1


def test_numbered_writes_may_begin_anywhere_and_leave_no_mark() -> None:
    place = Place("numbered")
    place.numbered("nightly", 20260101, row("a").slice(0, 0))
    place.numbered("nightly", 20260102, row("a"))
    assert place.ids == ["a"]
    assert not [path for path in place.storage.files if path.startswith(WRITERS)]


def test_a_guard_carries_writers_of_late_commits_and_of_other_engines() -> None:
    guard = ReplayGuard({"jvm": "7", "odd": "x"}, {"odd": {}})
    for number in range(CARRIED + 2):
        guard = guard.with_batch(BatchId(f"q{number}", 0), InputDigest(1, 1))
    guard = guard.with_batch(BatchId("q0", 1), InputDigest(1, 2))
    carried, aside = guard.parted(CARRIED)
    assert [list(one.committed) for one in aside] == [["q1"], ["q2"]]
    assert carried.committed["jvm"] == "7"
    assert "odd" in carried.committed
    assert list(carried.committed)[-1] == "q0"
    assert ReplayGuard.parse(carried.entries(), "p") == carried
    assert replace(carried) == carried

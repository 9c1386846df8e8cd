"""A batch and the table services that it brings along: they follow it, and never fail it."""

from __future__ import annotations

import pytest

from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.inspection.commit_metrics import commit_metrics
from hoodie_ds.services.post_commit import SERVICES, AfterCommit
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.timeline.timeline import Timeline
from tests.faults.writers import Place
from tests.tables import TRIPS, TYPE, trips

ASYNC = {"hoodie.datasource.compaction.async.enable": "true"}
SPANS = {"hoodie.streaming.batches.per.commit": "2"}
ROWS = trips(("0", "x", 0, 0.0))


class Seen(list[Timeline]):
    """A service that notes by which timeline it is asked, and may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def __call__(self, after: AfterCommit) -> None:
        self.append(after.timeline)
        if self.error:
            raise self.error


def put(monkeypatch: pytest.MonkeyPatch, service: Seen) -> Seen:
    monkeypatch.setitem(SERVICES, Service.COMPACTION, service)
    return service


def micro_batch(place: Place, number: int, **options: str) -> WriteResult:
    given = {**place.opts, **options, "path": "/t"}
    place.clock.advance(1)
    writer = Coordinator(WriteOptions.parse(given), place.storage, place.clock, place.ids)
    batch = writer.begin(ROWS.schema, is_stream=True)
    sent = ROWS.to_batches()
    message = write_task(batch, TaskId(), BatchId("query", number), sent, sole_writer=True)
    return writer.commit([message])


@pytest.fixture
def place() -> Place:
    return Place({**TRIPS, TYPE: "MERGE_ON_READ"})


def test_a_service_is_asked_by_the_timeline_with_the_commit(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = put(monkeypatch, Seen())
    times = [micro_batch(place, number, **ASYNC).instant_time for number in range(3)]
    assert [timeline.commits[-1].time for timeline in seen] == times
    assert [len(timeline.commits) for timeline in seen] == [1, 2, 3]


def test_a_service_that_fails_leaves_the_batch_as_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(monkeypatch, Seen(CorruptFileError("a plan cannot be read")))
    result = micro_batch(place, 0, **ASYNC)
    assert result.instant_time is not None
    assert place.rows() == [("0", "x", 0, 0.0)]
    (failed,) = result.failed_services
    assert failed.service is Service.COMPACTION
    assert failed.instant == result.instant_time
    assert "a plan cannot be read" in failed.reason


def test_the_listener_reports_what_failed_after_the_commit(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(monkeypatch, Seen(CorruptFileError("a plan cannot be read")))
    time = micro_batch(place, 0, **ASYNC).instant_time
    report = commit_metrics(place.storage, BatchId("query", 0))
    assert report is not None
    assert report["num_failed_services"] == 1
    told = f"compaction at instant {time} failed: CorruptFileError: a plan cannot be read"
    assert report["failed_services"] == told
    put(monkeypatch, Seen())
    micro_batch(place, 1, **ASYNC)
    report = commit_metrics(place.storage, BatchId("query", 1))
    assert report is not None
    assert report["num_failed_services"] == 0
    assert "failed_services" not in report


def test_a_batch_that_comes_again_brings_no_service_along(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    micro_batch(place, 0)
    seen = put(monkeypatch, Seen())
    assert micro_batch(place, 0, **ASYNC).already_committed
    assert not seen


def test_no_service_runs_while_an_instant_is_open(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = put(monkeypatch, Seen())
    micro_batch(place, 0, **ASYNC, **SPANS)
    assert not seen
    micro_batch(place, 1, **ASYNC, **SPANS)
    assert [len(timeline.commits) for timeline in seen] == [1]


def test_a_batch_write_brings_along_what_it_is_asked_for_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = put(monkeypatch, Seen())
    place.table.upsert(ROWS)
    place.table.upsert(ROWS, ASYNC)
    assert not seen
    place.table.upsert(ROWS, {"hoodie.compact.inline": "true"})
    assert len(seen) == 1

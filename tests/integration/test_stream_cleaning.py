"""A stream has old files deleted after its commits, each batch no more than a bounded number.

By Hudi's KEEP_LATEST_COMMITS each of the commits that are retained can be read as it was: of a file
group that every commit rewrites, as many versions stay as commits are retained, and the one before.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.services import post_commit
from hoodie_ds.testing import FaultyStorage, Kind, Operation, check_table
from hoodie_ds.timeline.instant import Action, State
from hoodie_ds.timeline.loading import load_timeline
from tests.faults.writers import MODE, SEVERAL, Place
from tests.micro_batches import MicroBatches
from tests.tables import BUCKETS, KEY, PARTITION, TRIPS, TYPE, trips

RETAINED = 3
VERSIONS = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": str(RETAINED + 1),
}
RETAIN = {"hoodie.clean.commits.retained": str(RETAINED)}
COMPACT_OFTEN = {"hoodie.compact.inline.max.delta.commits": "2"}
ASYNC = {"hoodie.datasource.compaction.async.enable": "true"}


def _stream(**options: str) -> MicroBatches:
    given = {**TRIPS, BUCKETS: "1", **RETAIN, **options}
    return MicroBatches(Place({key: text for key, text in given.items() if text}))


def _rows(number: int) -> pa.Table:
    return trips(("0", "x", number, float(number)), ("1", "x", number, float(number)))


def _newest(number: int) -> list[tuple[str, str, int, float]]:
    return [("0", "x", number, float(number)), ("1", "x", number, float(number))]


def _data_files(stream: MicroBatches) -> list[str]:
    return [path for path in stream.place.storage.files if not path.startswith(".hoodie/")]


def _cleans(stream: MicroBatches) -> list[State]:
    known = load_timeline(stream.place.storage, 1).instants
    return [i.state for i in known if i.action is Action.CLEAN]


def _base_files(stream: MicroBatches) -> int:
    return sum(path.endswith(".parquet") for path in _data_files(stream))


@pytest.mark.parametrize(
    "more",
    [{}, {MODE: SEVERAL}, {PARTITION: ""}, VERSIONS],
    ids=["single", "several", "without partitions", "versions"],
)
def test_versions_that_no_retained_commit_needs_are_gone(more: dict[str, str]) -> None:
    stream = _stream(**more)
    seen = []
    for number in range(3 * RETAINED):
        assert stream.run(number, _rows(number)).failed_services == ()
        seen.append(_base_files(stream))
        assert stream.place.rows() == _newest(number)
    assert seen == [1, 2, 3, *[RETAINED + 1] * (len(seen) - RETAINED)]
    assert set(_cleans(stream)) == {State.COMPLETED}
    # Old commits name what is gone, and plans of cleans say that it may be.
    assert check_table(stream.place.storage.files, settled=True, buckets=True) == []


def test_files_of_a_merge_on_read_table_stay_as_few() -> None:
    stream = _stream(**{TYPE: "MERGE_ON_READ"}, **COMPACT_OFTEN, **ASYNC)
    counts = []
    for number in range(24):
        assert stream.run(number, _rows(number)).failed_services == ()
        counts.append(len(_data_files(stream)))
    assert stream.place.rows() == _newest(23)
    assert max(counts[16:]) <= max(counts[8:16])
    assert _cleans(stream)


@pytest.mark.parametrize(
    "off",
    [
        {"hoodie.clean.automatic": "false"},
        {"clean.async.enabled": "false"},
        {"hoodie.table.services.enabled": "false"},
    ],
)
def test_each_switch_turns_it_off(off: dict[str, str]) -> None:
    stream = _stream(**off)
    for number in range(2 * RETAINED):
        stream.run(number, _rows(number))
    assert _base_files(stream) == 2 * RETAINED
    assert _cleans(stream) == []


def test_a_batch_deletes_no_more_than_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _stream()
    stream.place.opts["hoodie.clean.automatic"] = "false"
    for number in range(4 * RETAINED):
        stream.run(number, _rows(number))
    monkeypatch.setattr(post_commit, "_DELETED_AFTER_A_BATCH", 2)
    stream.place.opts["hoodie.clean.automatic"] = "true"
    before = _base_files(stream)
    counts = []
    for number in range(4 * RETAINED, 8 * RETAINED):
        assert stream.run(number, _rows(number)).failed_services == ()
        counts.append(_base_files(stream))
    lost = [a + 1 - b for a, b in zip([before, *counts], counts, strict=False)]
    assert max(lost) <= 2 * 2  # the rest of one plan, and a part of the next
    assert counts[0] == before + 1 - 2
    assert counts[-1] == RETAINED + 1
    assert stream.place.rows() == _newest(8 * RETAINED - 1)


def _services_of(stream: MicroBatches, number: int) -> list[Operation]:
    """What a batch asks of the storage once it is committed."""
    storage = FaultyStorage(stream.place.storage)
    writer = stream.writer(storage)
    batch = writer.begin(_rows(number).schema, is_stream=True)
    result = writer.commit([stream.task(batch, number, 0, _rows(number))])
    assert result.failed_services == ()
    done = storage.recorder.operations
    path = f".hoodie/{result.instant_time}.{batch.plan.action.value}"
    return done[[(one.kind, one.path) for one in done].index((Kind.PUT, path)) :]


def _listed(done: list[Operation]) -> list[str]:
    """Partitions that were listed."""
    listed = (one.path for one in done if one.kind is Kind.LIST)
    return [path for path in listed if not path.startswith(".hoodie")]


def test_a_stream_that_only_adds_rows_is_never_listed_for_a_clean() -> None:
    stream = _stream(**{KEY: "", BUCKETS: "", "hoodie.datasource.write.operation": "insert"})
    for number in range(2 * RETAINED):
        stream.run(number, _rows(number))
    assert _listed(_services_of(stream, 2 * RETAINED)) == []
    assert _cleans(stream) == []


def test_a_clean_is_planned_by_one_look_at_the_partitions() -> None:
    stream = _stream()
    for number in range(2 * RETAINED):
        stream.run(number, _rows(number))
    before = len(_cleans(stream))
    assert _listed(_services_of(stream, 2 * RETAINED)) == ["x"]
    assert len(_cleans(stream)) == before + 1


def test_so_is_one_after_a_compaction_and_batches_without_a_clean_claim_nothing() -> None:
    # Of versions of a merge-on-read table only compactions supersede any.
    stream = _stream(**{TYPE: "MERGE_ON_READ"}, **COMPACT_OFTEN, **ASYNC)
    for number in range(12):
        stream.run(number, _rows(number))
    seen = set()
    for number in range(12, 18):
        before = len(_cleans(stream))
        done = _services_of(stream, number)
        cleans = len(_cleans(stream)) - before
        planned = len(load_timeline(stream.place.storage, 1).pending_compactions)
        claims = [one for one in done if one.kind is Kind.PUT and one.path.endswith("/claim")]
        assert len(claims) == cleans + planned
        assert _listed(done) == ["x"] * (cleans + planned)
        seen.add((cleans, planned))
    assert seen == {(0, 1), (1, 0)}


def test_a_batch_write_cleans_where_it_is_asked_to() -> None:
    stream = _stream()
    for number in range(2 * RETAINED):
        stream.place.clock.advance(1000)
        stream.place.table.upsert(_rows(number))
    assert _base_files(stream) == 2 * RETAINED
    stream.place.clock.advance(1000)
    stream.place.table.upsert(_rows(9), {"hoodie.clean.automatic": "true"})
    assert _base_files(stream) == RETAINED + 1

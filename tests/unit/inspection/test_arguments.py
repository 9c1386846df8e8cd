"""What is handed to the methods of a table beside rows: taken, or refused by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import date, datetime, timezone
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import OptionError
from hoodie_ds.services.failures import ServiceFailure
from hoodie_ds.services.results import Work
from hoodie_ds.services.undoing import Loss
from hoodie_ds.sink.messages import WriteResult
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan
from hoodie_ds.timeline.bodies.clustering_plan import ClusteringPlan
from hoodie_ds.timeline.bodies.compaction_plan import CompactionPlan
from hoodie_ds.timeline.instant import Instant
from tests.tables import TRIPS, TYPE, found, trips

ROWS = trips(("a", "x", 1, 1.0))
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
RETAINED, FLINK_RETAINED = "hoodie.clean.commits.retained", "clean.retain_commits"
DELTAS, FLINK_DELTAS = "hoodie.compact.inline.max.delta.commits", "compaction.delta_commits"


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def table(storage: MemoryStorage) -> HoodieTable:
    return HoodieTable("memory://arguments", TRIPS, storage=storage)


CALLS: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "half a character": (lambda t: t.savepoint(user="\ud800"), "user", "half a character"),
    "a number for a user": (lambda t: t.savepoint(user=5), "user", "of type int"),
    "no comments": (lambda t: t.savepoint(comments=None), "comments", "give a string"),
    "half a time": (lambda t: t.savepoint("\udc00"), "instant", "half a character"),
    "a number to roll back": (lambda t: t.rollback(123), "instant", "an Instant, a Savepoint or"),
    "nothing to restore to": (lambda t: t.restore(None), "to", "give an instant time"),
    "a savepoint of bytes": (lambda t: t.delete_savepoint(b"2"), "instant", "of type bytes"),
    "a write of nothing": (lambda t: t.restore(WriteResult()), "to", "made no commit"),
    "a date": (lambda t: t.read(as_of=date(2026, 3, 1)), "as_of", "take '2026-03-01 00:00:00'"),
    "a moment": (lambda t: t.read_changes(NOON), "begin", "take '2026-03-01 12:00:00', in the"),
    "text to cluster": (lambda t: t.cluster("fare"), "options", "give a mapping"),
    "a number to compact": (lambda t: t.compact(options=5), "options", "give a mapping"),
    "empty text to clean": (lambda t: t.clean(""), "options", "give a mapping"),
    "a list to archive": (lambda t: t.archive([]), "options", "give a mapping"),
    "text to write": (lambda t: t.upsert(ROWS, "x"), "options", "give a mapping"),
    "a key that is none": (lambda t: t.upsert(ROWS, {5: "x"}), "options", "names as strings"),
    "text for a table": (lambda _: HoodieTable("memory://t", "x"), "options", "give a mapping"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CALLS)
def test_what_cannot_be_used_is_refused_by_name(
    table: HoodieTable, storage: MemoryStorage, name: str
) -> None:
    call, argument, remedy = CALLS[name]
    table.upsert(ROWS)
    before = dict(storage.files)
    with pytest.raises(OptionError, match=re.escape(remedy)) as caught:
        call(table)
    assert caught.value.key == argument
    str(caught.value).encode()
    assert storage.files == before


def test_what_is_given_for_options_is_not_told() -> None:
    with pytest.raises(OptionError) as caught:
        HoodieTable("memory://t", "secret")  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_what_has_a_time_stands_for_it(table: HoodieTable) -> None:
    first = table.upsert(ROWS)
    assert table.savepoint(first).time == first.instant_time
    second = table.upsert(trips(("a", "x", 2, 2.0)))
    table.upsert(trips(("a", "x", 3, 3.0)))
    newest = table.timeline.commits[-1]
    assert [loss.time for loss in table.rollback(newest).losses] == [newest.time]
    assert found(table) == [("a", "x", 2, 2.0)]
    kept = table.savepoint(table.timeline.commits[-1])
    assert kept.time == second.instant_time
    table.delete_savepoint(kept)
    table.restore(table.timeline.savepoints[0])
    assert found(table) == [("a", "x", 1, 1.0)]
    table.delete_savepoint(table.timeline.savepoints[0])
    assert table.timeline.savepoints == ()


@pytest.mark.parametrize(
    ("own", "call"),
    [(DELTAS, FLINK_DELTAS), (FLINK_DELTAS, DELTAS), (DELTAS, DELTAS), (DELTAS, DELTAS.upper())],
)
def test_options_of_a_service_win_under_another_name(own: str, call: str) -> None:
    options = {**TRIPS, TYPE: "MERGE_ON_READ", own: "2"}
    table = HoodieTable("memory://services", options, storage=MemoryStorage())
    for number in range(4):
        table.upsert(trips(("a", "x", number, 1.0)))
    assert not table.compact({call: "9"}, only_if_due=True, dry=True)
    assert table.compact(only_if_due=True, dry=True)


def test_options_of_a_write_win_under_another_name() -> None:
    format_, old = (
        f"hoodie.{old}keygen.timebased.output.dateformat" for old in ("", "deltastreamer.")
    )
    options = {**TRIPS, old: "yyyy", "write.precombine.field": "ts"}
    options.pop("hoodie.datasource.write.precombine.field", None)
    table = HoodieTable("memory://writes", options, storage=MemoryStorage())
    parsed = table._parsed({format_: "MM", "hoodie.datasource.write.precombine.field": "fare"})
    assert parsed.ordering_fields == ("fare",)
    assert table._parsed({}).ordering_fields == ("ts",)


def test_names_of_one_call_may_not_differ(table: HoodieTable) -> None:
    with pytest.raises(OptionError, match="contradicts"):
        table.clean({RETAINED: "1", FLINK_RETAINED: "2"})


def test_a_clean_takes_options(table: HoodieTable) -> None:
    for number in range(4):
        table.upsert(trips(("a", "x", number, 1.0)))
    assert not table.clean(dry=True)
    assert table.clean({RETAINED: "1"})
    assert found(table) == [("a", "x", 3, 1.0)]


@pytest.mark.parametrize("service", ["clean", "archive", "compact", "cluster"])
def test_options_of_a_service_may_not_contradict_the_table(
    table: HoodieTable, storage: MemoryStorage, service: str
) -> None:
    table.upsert(ROWS)
    before = dict(storage.files)
    other = {"hoodie.datasource.write.recordkey.field": "fare"}
    with pytest.raises(OptionError, match=r"recordkey.field' = 'fare'.*leave the option out"):
        getattr(table, service)(other)
    assert dict(storage.files) == before


def test_an_archive_takes_options(table: HoodieTable) -> None:
    for number in range(6):
        table.upsert(trips(("a", "x", number, 1.0)))
    table.clean({RETAINED: "1"})
    assert not table.archive(dry=True)
    few = {RETAINED: "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    assert table.archive(few)
    assert len(table.timeline.commits) < 6


def test_what_the_methods_return_are_public_names() -> None:
    methods = [m for name, m in inspect.getmembers(HoodieTable) if not name.startswith("_")]
    functions = [m.fget if isinstance(m, property) else m for m in methods]
    returned = [get_type_hints(function)["return"] for function in functions]
    kinds = {kind for hint in returned for kind in (get_origin(hint) or hint, *get_args(hint))}
    ours = {kind for kind in kinds if getattr(kind, "__module__", "").startswith("hoodie_ds.")}
    assert {kind.__name__ for kind in ours} >= {"Undoing", "Savepoint", "Compaction", "Clustering"}
    more = (
        Loss,
        Instant,
        ServiceFailure,
        CompactionPlan,
        ClusteringPlan,
        CleanerPlan,
        Service,
        Work,
    )
    for kind in (*ours, *more):
        assert kind.__name__ in hoodie_ds.__all__
        assert getattr(hoodie_ds, kind.__name__) is kind

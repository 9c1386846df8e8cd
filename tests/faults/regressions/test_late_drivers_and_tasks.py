"""Drivers and tasks that go on long after others took over: nothing is doubled, nothing hidden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pytest

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import HoodieError, TimelineError, WriteConflictError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import (
    FaultyStorage,
    Kind,
    MemoryStorage,
    Operation,
    SimClock,
    SimIds,
    one_thread,
)
from hoodie_ds.timeline.bodies.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.transaction.ownership import owner_entry
from hoodie_ds.transaction.recovery import recover
from tests.faults.foreign import archive
from tests.faults.scenarios import BLOOM
from tests.faults.stream import Model, Step, found, plain
from tests.tables import TRIPS, TYPE, TYPES, trips

SPAN = {"hoodie.streaming.batches.per.commit": "2"}


class Drivers:
    """A table in memory, and the drivers of a query that write to it, each a process."""

    def __init__(self, name: str, options: dict[str, str]) -> None:
        self.storage, self.clock, self.count = MemoryStorage(f"memory://{name}"), SimClock(), 0
        chosen = {**TRIPS, **options}
        self.options = {key: value for key, value in chosen.items() if value}

    def driver(self, before: Callable[[Operation], None] | None = None) -> Coordinator:
        self.count += 1
        storage: Any = self.storage
        if before is not None:
            storage = FaultyStorage(self.storage, before_each=before)
        given = WriteOptions.parse({**self.options, "path": self.storage.root})
        return Coordinator(given, cast(Storage, storage), self.clock, SimIds(str(self.count)))

    def task(
        self, batch: Batch, number: int, rows: pa.Table, attempt: int = 0
    ) -> TaskCommitMessage:
        task = TaskId(0, 0, attempt)
        return write_task(batch, task, BatchId("q", number), rows.to_batches(), True, self.clock)

    def write(self, number: int, rows: pa.Table, driver: Coordinator | None = None) -> None:
        driver = driver or self.driver()
        driver.commit([self.task(driver.begin(rows.schema, "q"), number, rows)])

    def archive(self, time: str) -> None:
        """Take an instant off the timeline, as other engines do."""
        archive(cast(Storage, self.storage), [time])


def rows(number: int) -> pa.Table:
    return trips((f"k{number}", f"x{number}", number, float(number)), ("k", "x", number, 0.0))


def expected(batches: int) -> list[list[tuple[str, Any]]]:
    model = Model()
    for number in range(batches):
        model = model.after(Step(rows(number)))
    return model.plain()


@pytest.mark.parametrize("kind", TYPES)
def test_a_batch_waiting_in_an_open_instant_was_committed_twice(kind: str) -> None:
    """A second driver writes the whole batch before some operation of the first one."""
    at, overtaken = 0, 0
    with one_thread():
        while True:
            at += 5  # any of them is like its neighbours
            drivers = Drivers(f"span-{kind}-{at}", {**BLOOM, TYPE: kind, **SPAN})
            reached: list[Any] = []

            def other_first(
                operation: Operation,
                at: int = at,
                drivers: Drivers = drivers,
                reached: list[int] = reached,
            ) -> None:
                if operation.number == at:
                    reached.append(at)
                    drivers.write(0, rows(0))

            try:
                drivers.write(0, rows(0), drivers.driver(other_first))
            except HoodieError:
                overtaken += 1
            for number in range(4):  # 0 comes again where its commit did not return
                drivers.write(number, rows(number))
                if number % 2:
                    seen = found(drivers.storage)
                    assert seen == expected(number + 1), f"overtaken before operation {at}"
            if not reached:
                break
    assert overtaken


def test_of_two_instants_with_the_same_batch_recovery_keeps_one() -> None:
    """The drivers put their manifests at the same moment, and both die before they decide."""
    drivers = Drivers("same-batch", SPAN)
    with one_thread():
        first, second = drivers.driver(), drivers.driver()
        batches = [driver.begin(rows(0).schema, "q") for driver in (first, second)]
        messages = [drivers.task(batch, 0, rows(0)) for batch in batches]

        def dies(operation: Operation) -> None:
            if operation.kind is Kind.PUT and "/decisions/" in operation.path:
                raise TimelineError("killed before its decision")

        def second_puts_its_manifest(operation: Operation) -> None:
            if operation.kind is Kind.PUT and "manifest" in operation.path:
                _commit(drivers, second, messages[1], dies)
            dies(operation)

        _commit(drivers, first, messages[0], second_puts_its_manifest)
        manifests = [path for path in drivers.storage.files if path.endswith("manifest_1.json")]
        assert len(manifests) == 2
        drivers.write(1, rows(1))
    assert len(load_timeline(cast(Storage, drivers.storage), 1).commits) == 1
    assert found(drivers.storage) == expected(2)


def _commit(
    drivers: Drivers,
    driver: Coordinator,
    message: TaskCommitMessage,
    before: Callable[[Operation], None],
) -> None:
    storage = cast(Storage, FaultyStorage(drivers.storage, before_each=before))
    table = replace(message.batch.table, storage=storage)
    batch = replace(message.batch, plan=replace(message.batch.plan, table=table))
    with pytest.raises(TimelineError, match="killed"):
        driver.commit([replace(message, batch=batch)])


def test_a_batch_that_one_commit_holds_was_completed_from_a_manifest_too() -> None:
    """One driver waits for the next batch, another commits each; neither saw the other."""
    waiting, at_once = Drivers("at-once", SPAN), Drivers("at-once", {})
    at_once.storage, at_once.count = waiting.storage, 100
    killed: list[Any] = []

    def dies(operation: Operation) -> None:
        if operation.kind is Kind.PUT and "/decisions/" in operation.path:
            raise TimelineError("killed before its decision")

    with one_thread():
        slow = waiting.driver()
        begun = slow.begin(rows(0).schema, "q")

        def puts_its_manifest(operation: Operation) -> None:
            if operation.kind is Kind.PUT and "/decisions/" in operation.path and not killed:
                killed.append(1)
                _commit(waiting, slow, message, dies)

        fast = at_once.driver(puts_its_manifest)
        other = fast.begin(rows(0).schema, "q")
        message = waiting.task(begun, 0, rows(0))
        fast.commit([at_once.task(other, 0, rows(0))])
        at_once.write(1, rows(1))
    assert killed
    assert len(load_timeline(cast(Storage, waiting.storage), 1).commits) == 2
    assert found(waiting.storage) == expected(2)


def test_a_batch_joined_an_instant_of_another_writer() -> None:
    drivers = Drivers("anothers", SPAN)
    with one_thread():
        drivers.write(0, rows(0))
        batch = drivers.driver().begin(rows(1).schema, "q")
        (inflight,) = [path for path in drivers.storage.files if path.endswith(".inflight")]
        owner = {OWNER_KEY: owner_entry("another", "attempt")}
        drivers.storage.replace(inflight, CommitMetadata((), "UPSERT", owner).to_bytes(1))
        with pytest.raises(WriteConflictError, match="belongs to another writer now"):
            drivers.task(batch, 1, rows(1))


def test_a_batch_without_a_number_is_superseded_by_none() -> None:
    """A write that was killed with its manifest there, beside another engine's service."""
    drivers = Drivers("unnumbered", SPAN)

    def dies(operation: Operation) -> None:
        if operation.kind is Kind.PUT and "/decisions/" in operation.path:
            raise TimelineError("killed before its decision")

    with one_thread():
        driver = drivers.driver()
        batch = driver.begin(rows(0).schema)
        message = write_task(batch, TaskId(0, 0, 0), None, rows(0).to_batches(), True)
        drivers.storage.put_if_absent(".hoodie/20200101000000000.indexing.requested", b"")
        _commit(drivers, driver, message, dies)
        drivers.write(0, rows(1))
    assert found(drivers.storage) == expected(2)


@pytest.mark.parametrize("name", ["manifest_1.json", ".inflight"])
def test_a_damaged_instant_does_not_roll_back_waiting_batches(name: str) -> None:
    """What the file would say of the batches is not known, and Spark has moved past them."""
    drivers = Drivers(f"damaged-{name}", {"hoodie.streaming.batches.per.commit": "3"})
    with one_thread():
        drivers.write(0, rows(0))
        drivers.write(1, rows(1))
        (path,) = [path for path in drivers.storage.files if path.endswith(name)]
        drivers.storage.replace(path, b"{")
        drivers.options = TRIPS
        drivers.write(2, rows(2))
    assert found(drivers.storage) == expected(3)


def test_a_driver_with_another_number_of_batches_lost_written_ones() -> None:
    """Its commit of a batch that waits elsewhere would have those that wait with it undone."""
    drivers = Drivers("other-span", {**SPAN, "hoodie.streaming.batches.per.commit": "3"})
    alone = Drivers("other-span", {})
    alone.storage = drivers.storage
    with one_thread():
        overtaken = alone.driver()
        begun = overtaken.begin(rows(0).schema, "q")
        drivers.write(0, rows(0))
        drivers.write(1, rows(1))
        with pytest.raises(WriteConflictError, match="has written batch 0 of query q under"):
            overtaken.commit([alone.task(begun, 0, rows(0))])
        drivers.write(2, rows(2))
    assert found(drivers.storage) == expected(3)


def test_a_batch_rolled_back_by_another_driver_was_reported_as_written() -> None:
    """Between the driver's last look at the timeline and its manifest."""
    drivers = Drivers("undone", SPAN)
    undone: list[Any] = []

    def begins(operation: Operation) -> None:
        if operation.kind is Kind.PUT and "manifest" in operation.path and not undone:
            undone.append(drivers.driver().begin(rows(0).schema, "q"))

    with one_thread():
        with pytest.raises(TimelineError, match="was rolled back by another writer"):
            drivers.write(0, rows(0), drivers.driver(begins))
        drivers.write(0, rows(0))
        drivers.write(1, rows(1))
    assert undone
    assert found(drivers.storage) == expected(2)


def test_a_task_took_the_time_of_a_rollback() -> None:
    """Two drivers begin on the same timeline, and one of them has something to undo."""
    drivers = Drivers("rollback", {})
    with one_thread():
        drivers.write(0, rows(0))
        drivers.task(drivers.driver().begin(rows(1).schema, "q"), 1, rows(1))
        begun = drivers.driver().begin(rows(1).schema, "q")
        rolled_back = load_timeline(cast(Storage, drivers.storage), 1).rollbacks[-1].time
        late = replace(begun, proposed_time=rolled_back)  # which it would be without the rollback
        assert drivers.task(late, 1, rows(1)).instant_time != rolled_back


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("kind", TYPES)
def test_a_late_task_opened_an_archived_instant_again(kind: str, first: int) -> None:
    """Its rollback hid the committed rows."""
    drivers = Drivers(f"archived-{kind}-{first}", {TYPE: kind})
    with one_thread():
        for number in range(first):
            drivers.write(number, rows(number))
        late = drivers.driver().begin(rows(first).schema, "q")
        message = drivers.task(late, first, rows(first))
        drivers.driver().commit([message])
        for number in range(first + 1, first + 4):
            drivers.write(number, rows(number))
        for instant in load_timeline(cast(Storage, drivers.storage), 1).commits[: first + 2]:
            drivers.archive(instant.time)
        before = found(drivers.storage)
        assert before == expected(first + 4)
        if first:
            with pytest.raises(WriteConflictError, match="completed and archived"):
                drivers.task(late, first, rows(first), attempt=1)
        else:  # it had seen no commit, and takes a time after all of them
            drivers.task(late, first, rows(first), attempt=1)
        assert found(drivers.storage) == before
        drivers.write(first + 4, rows(first + 4))
    assert found(drivers.storage) == expected(first + 5)


@pytest.mark.parametrize("kind", TYPES)
def test_a_rollback_of_an_archived_instant_hid_its_rows(kind: str) -> None:
    """The late task was stopped for all that time within the opening of the instant."""
    drivers = Drivers(f"reopened-{kind}", {TYPE: kind})
    with one_thread():
        drivers.write(0, rows(0))
        begun = drivers.driver().begin(rows(1).schema, "q")
        message = drivers.task(begun, 1, rows(1))
        opened = {p: d for p, d in drivers.storage.files.items() if p.startswith(".hoodie/2")}
        drivers.driver().commit([message])
        for number in (2, 3):
            drivers.write(number, rows(number))
        for instant in load_timeline(cast(Storage, drivers.storage), 1).commits[:2]:
            drivers.archive(instant.time)
        time = str(message.instant_time)
        for path, data in opened.items():
            if time in path:
                drivers.storage.put_if_absent(path, data)
        late = drivers.task(begun, 1, rows(1), attempt=1)
        assert late.instant_time == time
        table = begun.table
        recover(table, drivers.clock)
        assert not load_timeline(table.storage, 1).pending
        left = {status.stat.path for status in late.statuses} & drivers.storage.files.keys()
    assert not left
    assert found(drivers.storage) == expected(4)


def test_a_first_instant_that_others_overtook_is_rolled_back() -> None:
    """It lies before the first commit too, and nothing was archived."""
    drivers = Drivers("first", {})
    with one_thread():
        begun = drivers.driver().begin(rows(0).schema, "q")
        message = drivers.task(begun, 0, rows(0))
        drivers.write(0, rows(0))
    timeline = load_timeline(cast(Storage, drivers.storage), 1)
    assert [rollback.time > str(message.instant_time) for rollback in timeline.rollbacks] == [True]
    assert found(drivers.storage) == plain(rows(0).to_pylist())

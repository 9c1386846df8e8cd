"""A follower of a table's own knows each instant before it is visible, whoever ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import AlreadyExistsError, CommitOutcomeUnknownError, StorageError
from hoodie_ds.sync import followers as sync_followers
from hoodie_ds.sync.followers import Follower
from hoodie_ds.table.table import Table
from hoodie_ds.testing import CRASHES, ERRORS, Kind, MemoryStorage, sweep
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction import completion
from tests.faults import cleans, rewriting, undoing
from tests.faults.pairs import PAIRS, SEVERAL, WRITER, Play
from tests.faults.scenarios import VERSIONS
from tests.faults.schedules import Actor, Phase, explore
from tests.faults.services import Check, Killed, Make, one_in, part_of_schedules
from tests.faults.swept import Sweep
from tests.tables import TRIPS, VERSION, timeline_of, trips
from tests.tiers import in_turn

pytestmark = pytest.mark.usefixtures("one_thread", "follower")

NOTES = ".hoodie/notes"
UP_TO = ".hoodie/noted_up_to"
NOTING = (*WRITER[:-1], Phase("note", Kind.PUT, (f"{NOTES}/*",)), WRITER[-1])
"""The phases of a writer of a table with the follower."""
SERVICES: dict[str, Make[Killed]] = {
    "compaction": rewriting.KILLED["compaction"],
    "clustering, copy-on-write": rewriting.KILLED["clustering, copy-on-write"],
    "clean, commits, cow": cleans.KILLED["clean, commits, cow"],
    **{f"{act}, cow": undoing.KILLED[f"{act}, cow"] for act in undoing.ACTS},
}


class Notes:
    """A follower that puts a file for each instant that is about to become visible."""

    service = Service.DELTA
    names_files = True

    def check(self, columns: pa.Schema) -> None:
        pass

    def before(self, table: Table, completed: Instant, changes: FileChanges) -> None:
        with suppress(AlreadyExistsError):
            table.storage.put_if_absent(note(completed), "\n".join(changes.added).encode())

    def after(self, table: Table, timeline: Timeline | None = None) -> None:
        table.storage.replace(UP_TO, _newest(table.load_timeline()))

    def repair(self, table: Table, *, dry: bool = False) -> None:
        pass


def _newest(timeline: Timeline) -> bytes:
    return next((instant.time for instant in timeline.commits_backwards()), "").encode()


def note(instant: Instant) -> str:
    assert instant.state is State.COMPLETED
    return f"{NOTES}/{instant.time}.{instant.action.value}"


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a table finds the follower there."""
    notes: Follower = Notes()
    for module in (completion, sync_followers):
        monkeypatch.setattr(module, "own_followers", lambda table: (notes,))


def visible(left: MemoryStorage) -> list[Instant]:
    """The completed instants of a table, of all actions."""
    if not left.files:
        return []
    return [i for i in timeline_of(left).instants if i.state is State.COMPLETED]


def assert_followed(left: MemoryStorage) -> None:
    unknown = [str(instant) for instant in visible(left) if note(instant) not in left.files]
    assert not unknown, f"visible, and the follower does not know: {unknown}"


def assert_caught_up(left: MemoryStorage) -> None:
    assert left.files[UP_TO] == _newest(timeline_of(left))


def followed(check: Check, recover: Callable[[MemoryStorage], object] | None = None) -> Check:
    """Look at what was left, before it is recovered and afterwards."""

    def checked(left: MemoryStorage, raised: BaseException | None) -> None:
        assert_followed(left)
        if recover is not None:
            recovered = left.copy()
            recover(recovered)
            assert_followed(recovered)
        check(left, raised)
        assert_followed(left)

    return checked


class Followed(Play):
    """A pair of processes, which stop before they put a note too."""

    @property
    def actors(self) -> tuple[Actor, Actor]:
        first, second = (
            replace(actor, phases=NOTING if actor.phases is WRITER else actor.phases)
            for actor in super().actors
        )
        return first, second

    def check(
        self,
        left: MemoryStorage,
        raised: Sequence[BaseException | None],
        but_for: str | None = None,
    ) -> None:
        assert_followed(left)
        super().check(left, raised, but_for)
        assert_followed(left)


@pytest.mark.parametrize(
    ("name", "version", "effects", "every"),
    [
        pytest.param("upsert, mor", "6", CRASHES, 5, id="upsert, crashes"),
        pytest.param("upsert, mor", "6", ERRORS, 5, id="upsert, errors"),
        pytest.param(
            "rollback, cow", "9", CRASHES, 1, id="rollback, crashes", marks=pytest.mark.slow
        ),
        pytest.param(
            "rollback, cow", "9", ERRORS, 1, id="rollback, errors", marks=pytest.mark.slow
        ),
        pytest.param("first batch, cow", "9", CRASHES, 5, id="first batch, crashes"),
        pytest.param(
            "first batch, cow", "9", ERRORS, 1, id="first batch, errors", marks=pytest.mark.slow
        ),
    ],
)
def test_a_write_is_known_wherever_its_process_ends(
    name: str, version: str, effects: frozenset[object], every: int
) -> None:
    swept = Sweep(name, version=version)

    some = one_in(31 // every, swept.check)

    def check(left: MemoryStorage, raised: BaseException | None) -> None:
        some(left.copy(), raised)
        if raised is not None:  # Spark runs the batch again, which may be in the table
            swept._replay(left)
            assert_caught_up(left)

    known = followed(check, swept.recover)
    tried = sweep(swept.start, swept.play, known, effects, every)  # type: ignore[arg-type]
    assert tried > 50 // every


@pytest.mark.parametrize(("name", "version"), in_turn(SERVICES, VERSIONS, 1, every=2))
def test_a_service_is_known_wherever_its_process_ends(name: str, version: str) -> None:
    killed = SERVICES[name](version=version)
    before = set(visible(killed.start))
    check = followed(one_in(23, killed.check))
    assert sweep(killed.start, killed.play, check, CRASHES) > 20
    left = killed.start.copy()
    killed.play(left)  # type: ignore[arg-type]
    assert name.startswith("deletion") or set(visible(left)) - before, "nothing was completed"


@pytest.mark.parametrize("name", ["writer, writer", "writer, rollback"])
def test_a_write_is_known_whoever_comes_between_the_note_and_the_commit(name: str) -> None:
    pair = PAIRS[name]
    play = Followed(name, replace(pair, options={**pair.options, VERSION: "9"}), SEVERAL)
    orders = part_of_schedules(name, play.actors, 120)
    assert explore(play.fresh, play.actors, play.check, orders) > 10


@pytest.mark.parametrize("to", [6, 9])
def test_an_instant_stays_known_where_its_table_changes_its_version(to: int) -> None:
    storage = MemoryStorage()
    table = HoodieTable("/t", {**TRIPS, VERSION: "9" if to == 6 else "6"}, storage=storage)
    for fare in (1.0, 2.0):
        table.upsert(trips(("a", "x", 1, fare)))
    notes = {path for path in storage.files if path.startswith(NOTES)}
    _ = table.upgrade(to) if to == 9 else table.downgrade(to)
    assert_followed(storage)
    assert {path for path in storage.files if path.startswith(NOTES)} == notes


def test_an_instant_is_invisible_until_its_follower_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = MemoryStorage()
    table = HoodieTable("/t", TRIPS, storage=storage)
    with monkeypatch.context() as patched:
        patched.setattr(Notes, "before", _fails)
        with pytest.raises(CommitOutcomeUnknownError, match="no notes today"):
            table.upsert(trips(("a", "x", 1, 1.0)))
        assert visible(storage) == []
    table.upsert(trips(("b", "x", 1, 1.0)))
    assert [row["id"] for row in table.read().to_pylist()] == ["a", "b"]
    assert_followed(storage)


def _fails(*_: object) -> None:
    raise StorageError("no notes today")

"""Timelines with holes, from generators: against Hudi's rules in plain words, and against rows.

`tests/query_histories.py` makes holes as archiving does, in the middle of all else.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_ds import HoodieTable
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from hoodie_ds.timeline.loading import load_timeline
from tests.faults.foreign import archive, savepoint
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips

T = [f"202501010000000{n:02d}" for n in range(8)]
WRITES = ("commit", "deltacommit", "replacecommit")


@dataclass(frozen=True)
class Entry:
    """What the timeline says of one time."""

    action: str
    complete: bool = True
    kept: bool = False

    def names(self, time: str) -> list[str]:
        inflight = (
            f"{time}.inflight" if self.action == "commit" else f"{time}.{self.action}.inflight"
        )
        names = [f"{time}.{self.action}.requested", inflight]
        names += [f"{time}.{self.action}"] * self.complete
        return names + [f"{time}.savepoint.inflight", f"{time}.savepoint"] * self.kept


ENTRIES = st.one_of(
    st.none(),
    st.builds(Entry, st.sampled_from(WRITES), st.just(True), st.booleans()),
    st.builds(Entry, st.sampled_from([*WRITES, "clean", "rollback"]), st.booleans()),
)


def hudi_says(entries: list[Entry | None], time: str) -> bool:
    """The rule: completed, or before the first commit without a savepoint and not pending."""
    here = entries[T.index(time)]
    if here is not None and here.action in WRITES and here.complete:
        return True
    commits = [
        (at, entry)
        for at, entry in zip(T, entries, strict=True)
        if entry is not None and entry.action in WRITES and entry.complete
    ]
    starts = [at for at, entry in commits if not entry.kept] or [at for at, _ in commits][-1:]
    pending = here is not None and not here.complete
    return bool(starts) and time < starts[0] and not pending


@given(entries=st.lists(ENTRIES, min_size=len(T), max_size=len(T)))
def test_what_is_committed_on_a_foreign_timeline(entries: list[Entry | None]) -> None:
    storage = MemoryStorage()
    for time, entry in zip(T, entries, strict=True):
        for name in entry.names(time) if entry else ():
            storage.put_if_absent(f".hoodie/{name}", b"")
    timeline = load_timeline(storage, 1)
    assert [timeline.is_committed(t) for t in T] == [hudi_says(entries, t) for t in T]


@settings(max_examples=12)
@given(
    kind=st.sampled_from(TYPES),
    written=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), min_size=3, max_size=6
    ),
    kept=st.sets(st.integers(0, 4), max_size=2),
    newest=st.integers(1, 3),
)
def test_savepoints_and_archiving_change_no_row(
    kind: str, written: list[tuple[str, str]], kept: set[int], newest: int
) -> None:
    """All but the newest commits are archived, save those that a savepoint keeps."""
    storage = MemoryStorage(clock=SimClock())
    opts = {**TRIPS, BUCKETS: "1", TYPE: kind}
    table = HoodieTable("/t", opts, storage=storage, clock=SimClock(), ids=SimIds())
    model = {}
    for number, (key, city) in enumerate(written):
        table.upsert(trips((key, city, number, float(number))))
        model[key, city] = (key, city, number, float(number))
    times = [instant.time for instant in table.timeline.commits]
    saved = {time for number, time in enumerate(times) if number in kept}
    for time in saved:
        savepoint(storage, time)
    archive(storage, [time for time in times[:-newest] if time not in saved])
    assert found(table) == sorted(model.values())
    table.upsert(trips(("n", "x", 9, 9.0)))
    assert found(table) == sorted([*model.values(), ("n", "x", 9, 9.0)])

"""Cleans that are killed, or that run beside writers and readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from hoodie_ds.services.cleaning import clean
from hoodie_ds.testing import Kind, MemoryStorage
from hoodie_ds.timeline.instant import Action
from tests.faults.pairs import SEVERAL, SINGLE, Pair
from tests.faults.scenarios import BLOOM, CHANGE_DATA, COW, ELSEWHERE, MOR, TWO
from tests.faults.schedules import Phase
from tests.faults.services import Beside, KilledService, Make, WriterThatServes
from tests.faults.stream import Step, assert_well, found
from tests.tables import timeline_of, trips

ONE = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0))
_BY_COMMITS = {"hoodie.clean.commits.retained": "1"}
_BY_VERSIONS = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
}
_STEPS = (Step(ONE), Step(TWO), Step(ELSEWHERE), Step(TWO), Step(ELSEWHERE))
_REPLACED = (Step(ONE), Step(TWO, "insert_overwrite"), Step(ONE), Step(TWO))
_FILES_AT_LEAST = 2


class KilledClean(KilledService):
    """A clean that fails, and the checks of what it leaves."""

    def __init__(self, options: Mapping[str, str], before: Sequence[Step], *, version: str) -> None:
        super().__init__(clean, options, before, version)
        self.last = len(before)
        whole = self.start.copy()
        self.serve(whole, "first")
        self.kept = _data(whole)
        assert len(_data(self.start) - self.kept) >= _FILES_AT_LEAST

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """Readers see the same rows; the next clean does the rest, and none does more."""
        self._check_rows(left)
        for attempt in ("third", "fourth"):
            self.serve(left, attempt)
            assert _data(left) == self.kept
            instants = timeline_of(left).instants
            assert [i.counts for i in instants if i.action is Action.CLEAN] == [True]
        self._check_rows(left)
        self.write(left, self.last, Step(TWO), 99)
        assert found(left) == self.model.after(Step(TWO)).plain()
        assert_well(left, self.opts, settled=True)

    check_after_two = check

    def _check_rows(self, left: MemoryStorage) -> None:
        assert self.is_unchanged(left)
        assert_well(left, self.opts)
        planned = any(path.endswith(".clean.requested") for path in left.files)
        assert _data(left) >= (self.kept if planned else _data(self.start))


def _data(storage: MemoryStorage) -> set[str]:
    return {path for path in storage.files if not path.startswith(".hoodie/")}


_TABLES: Final[dict[str, tuple[Mapping[str, str], Sequence[Step]]]] = {
    "commits, cow": ({**COW, **_BY_COMMITS}, _STEPS),
    "versions, cow": ({**COW, **_BY_VERSIONS}, _STEPS),
    "commits, bloom": ({**COW, **BLOOM, **_BY_COMMITS}, _STEPS),
    "change data, cow": ({**COW, **CHANGE_DATA, **_BY_COMMITS}, _STEPS),
    "commits, several": ({**COW, **SEVERAL, **_BY_COMMITS}, _STEPS),
    "versions, several": ({**COW, **SEVERAL, **_BY_VERSIONS}, _STEPS),
    "replaced, cow": ({**COW, **_BY_COMMITS}, _REPLACED),
    "replaced, mor": ({**MOR, **_BY_COMMITS}, _REPLACED),
    "replaced, mor, several": ({**MOR, **SEVERAL, **_BY_COMMITS}, _REPLACED),
}
KILLED: Final = {
    f"clean, {name}": partial(KilledClean, options, before)
    for name, (options, before) in _TABLES.items()
}

CLEANER = (
    Phase("begin"),
    Phase("commit", Kind.PUT, (".hoodie/*commit",)),
    Phase("plan", Kind.PUT, ("*.clean.requested",)),
    Phase("start", Kind.PUT, ("*.clean.inflight",)),
    Phase("delete", Kind.DELETE, ("*.parquet",)),
    Phase("finish", Kind.PUT, ("*.clean",)),
)
MINE = trips(("a", "x", 7, 7.0), ("d", "x", 7, 7.0))
YOURS = trips(("a", "x", 8, 8.0), ("e", "x", 8, 8.0))
_THREE = (Step(ONE), Step(TWO), Step(TWO))
_BLOOM: Final = {**BLOOM, **_BY_COMMITS}
_PAIRS: Final = {
    "writer, clean": (Pair(Step(MINE), Step(YOURS), _BY_COMMITS, _THREE), SEVERAL),
    "writer, clean, bloom": (Pair(Step(MINE), Step(YOURS), _BLOOM, _THREE), SEVERAL),
    "writer of other groups, clean": (
        Pair(Step(ELSEWHERE), Step(YOURS), _BY_COMMITS, _THREE),
        SEVERAL,
    ),
    "reader, clean": (Pair(None, Step(YOURS), _BY_COMMITS, _THREE, reader=True), SINGLE),
}
BESIDE: Final[dict[str, Make[Beside]]] = {
    name: partial(WriterThatServes, name, pair, mode, clean, CLEANER)
    for name, (pair, mode) in _PAIRS.items()
}

"""Archiving that is killed, or that runs beside writers and readers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from hoodie_ds.services.archiving import archive
from hoodie_ds.testing import Kind, MemoryStorage
from hoodie_ds.timeline.instant import Instant
from tests.archived import archived
from tests.faults.pairs import SEVERAL, SINGLE, Pair
from tests.faults.scenarios import BLOOM, COW, ELSEWHERE, MOR, TWO
from tests.faults.schedules import Phase
from tests.faults.services import Beside, KilledService, Make, WriterThatServes
from tests.faults.stream import Step, assert_well, found
from tests.tables import timeline_of, trips

ONE = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0))
_KEEP: Final = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}
_STEPS = (Step(ONE), Step(TWO), Step(ELSEWHERE), Step(TWO), Step(ELSEWHERE))


def _known(storage: MemoryStorage) -> set[Instant]:
    """The completed instants of which the timeline or the archive tells."""
    return {*timeline_of(storage).completed, *archived(storage)}


class KilledArchiving(KilledService):
    """Archiving that fails, and the checks of what it leaves."""

    def __init__(self, options: Mapping[str, str], *, version: str) -> None:
        super().__init__(archive, {**_KEEP, **options}, _STEPS, version)
        self.known = _known(self.start)

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """No instant is lost, none looks unfinished, and the next writes and archives go on."""
        self._check_all_is_known(left)
        self.serve(left, "second")
        self._check_all_is_known(left)
        model = self.model
        for number, step in enumerate((Step(TWO), Step(ELSEWHERE)), len(_STEPS)):
            self.write(left, number, step, 90)
            model = model.after(step)
        self.serve(left, "third")
        assert timeline_of(left).num_completed <= 3
        assert _known(left) > self.known
        assert found(left) == model.plain()
        assert_well(left, self.opts, settled=True)

    def _check_all_is_known(self, left: MemoryStorage) -> None:
        assert _known(left) == self.known
        assert not timeline_of(left).pending
        assert self.is_unchanged(left)
        assert_well(left, self.opts)


_TABLES: Final[dict[str, Mapping[str, str]]] = {
    "cow": COW,
    "mor": MOR,
    "bloom": {**COW, **BLOOM},
    "cow, several": {**COW, **SEVERAL},
    "mor, several": {**MOR, **SEVERAL},
}
KILLED: Final = {
    f"archiving, {name}": partial(KilledArchiving, options) for name, options in _TABLES.items()
}

ARCHIVER = (
    Phase("begin"),
    Phase("commit", Kind.PUT, (".hoodie/*commit",)),
    Phase("look", Kind.LIST, (".hoodie/.temp",)),
    Phase("archive", Kind.PUT, (".hoodie/archived/*", ".hoodie/timeline/history/*")),
    Phase("requests", Kind.DELETE, (".hoodie/*.requested",)),
    Phase("completed", Kind.DELETE, (".hoodie/*commit",)),
)
MINE = trips(("a", "x", 7, 7.0), ("d", "x", 7, 7.0))
YOURS = trips(("a", "x", 8, 8.0), ("e", "x", 8, 8.0))
_FOUR = (Step(ONE), Step(TWO), Step(TWO), Step(TWO))
_MOR: Final = {**MOR, **_KEEP}
_PAIRS: Final = {
    "writer, archive": (Pair(Step(MINE), Step(YOURS), _KEEP, _FOUR), SEVERAL),
    "writer, archive, mor": (Pair(Step(MINE), Step(YOURS), _MOR, _FOUR), SEVERAL),
    "writer of other groups, archive": (Pair(Step(ELSEWHERE), Step(YOURS), _KEEP, _FOUR), SEVERAL),
    "reader, archive": (Pair(None, Step(YOURS), _KEEP, _FOUR, reader=True), SINGLE),
    "reader, archive, mor": (Pair(None, Step(YOURS), _MOR, _FOUR, reader=True), SINGLE),
}
BESIDE: Final[dict[str, Make[Beside]]] = {
    name: partial(WriterThatServes, name, pair, mode, archive, ARCHIVER)
    for name, (pair, mode) in _PAIRS.items()
}

"""Queries of random histories: each moment is the model's, and what changed leads from one to
the next, whatever was written, replaced, rewritten, cleaned, archived, undone and run by hand in
between.

What a clean or an archive took may be refused with a `TimelineError`, and nothing else may.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds.errors import TimelineError
from tests.query_histories import History, Moment, Rows, content
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION
from tests.tiers import AT_NIGHT

STEPS = 14


def image(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)


def applied(before: Rows, changes: list[dict[str, Any]]) -> Rows:
    """A snapshot after changes, each of which must fit what is there."""
    rows = dict(before)
    for change in sorted(changes, key=lambda row: (row["ts_ms"], row["op"])):
        old, new = image(change["before"]), image(change["after"])
        assert (old is None, new is None) == (change["op"] == "i", change["op"] == "d")
        if old is not None:
            assert rows.pop(old["id"]) == (old["ts"], old["fare"])
        if new is not None:
            assert new["id"] not in rows
            rows[new["id"]] = (new["ts"], new["fare"])
    return rows


class Asked:
    """Asks a table at the end of its history for all moments and ranges."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.table = history.table
        self.steps = {moment.number: moment for moment in history.moments}

    def all(self) -> None:
        first, *moments = self.history.moments
        for number, begin in enumerate([first, *moments]):
            self.as_of(begin)
            for end in moments[number:]:
                self.changes(begin, end)
                self.incremental(begin, end)

    def as_of(self, moment: Moment) -> None:
        if moment.number:
            found = self.answer(moment, lambda: content(self.table.read(as_of=moment.time)))
            assert found in (None, moment.rows)

    def changes(self, begin: Moment, end: Moment) -> None:
        def ask() -> Rows:
            found = self.table.read_changes(begin.bound, end.bound).to_pylist()
            return applied(begin.rows, found)

        assert self.answer(begin, ask) in (None, end.rows)

    def incremental(self, begin: Moment, end: Moment) -> None:
        """Where something is gone, rows of the range may be missing that the table has no more."""
        news = self.answer(
            begin, lambda: content(self.table.read_incremental(begin.bound, end.bound))
        )
        if news is None:
            return
        stayed = {key: row for key, row in begin.rows.items() if key in end.rows}
        if news.items() <= end.rows.items() and {**stayed, **news} == end.rows:
            return
        assert begin.time < self.history.retained
        wrote = {
            (key, row)
            for key, row in end.rows.items()
            if begin.bound < self.steps[row[0]].bound <= end.bound
        }
        assert wrote & self.history.rows.items() <= news.items() <= wrote

    def answer(self, begin: Moment, ask: Callable[[], Rows]) -> Rows | None:
        """Ask for what begins with a moment; None if it is refused, as it may be."""
        try:
            found = ask()
        except TimelineError:
            assert begin.time < self.history.retained
            self.history.done["query refused"] += 1
            return None
        self.history.done["query answered"] += 1
        return found


QUICK = [("8", "8", "MERGE_ON_READ", "false"), ("5", "9", "COPY_ON_WRITE", "false")]
OTHERS = [("7", "6", "MERGE_ON_READ", "true")]
"""Histories with holes, of which one has the index BLOOM, and clusters."""
ALL = list(product(("6", "8", "9"), ("COPY_ON_WRITE", "MERGE_ON_READ"), ("true", "false")))
CASES = [
    *QUICK,
    *(pytest.param(*case, marks=pytest.mark.slow) for case in OTHERS),
    *(
        pytest.param("1", *case, marks=pytest.mark.slow)
        for case in ALL
        if ("1", *case) not in QUICK
    ),
    *(pytest.param(seed, *case, marks=AT_NIGHT) for seed, case in product("2346", ALL)),
]


@pytest.mark.parametrize(("seed", "version", "kind", "logged"), CASES)
def test_every_moment_and_every_range(
    seed: str, version: str, kind: str, logged: str, tmp_path: Path
) -> None:
    chance = random.Random(f"{seed}/{version}/{kind}/{logged}")
    options = {**TRIPS, TYPE: kind, VERSION: version, "hoodie.table.cdc.enabled": logged}
    if chance.random() < 0.4:
        options = {**options, "hoodie.index.type": "BLOOM"}
        del options[BUCKETS]
    history = History(tmp_path, options, chance)
    for number in range(1, STEPS):
        history.step(number)
    assert history.done["hole"] or (seed, version, kind, logged) not in QUICK
    Asked(history).all()
    assert history.done["query answered"] or not history.rows

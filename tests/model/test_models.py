"""Protocols in every order of their steps: what holds, and the shortest way to each damage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.model import decisions, guards, names, sink, writers
from tests.model.explore import Model, explore
from tests.model.variants import LARGE, SMALL, UNSAFE, VAST
from tests.tally import tally

ENOUGH = 200_000
EXHAUSTED = {
    "writers G optimistic on local clocks, put-if-absent",
    "writers J pessimistic on local clocks, put-if-absent",
    "guards, five instants",
    "decisions, two tasks each",
    "decisions, dead writers' manifests",
}
"""Those of `LARGE` that have fewer states than that."""

FAR = 3_000_000
"""More than two or three of `VAST` have: those are looked at to the last state."""
PACKAGE = Path(__file__).parents[2] / "hoodie_ds"


@pytest.mark.parametrize("name", UNSAFE)
def test_what_a_rule_prevents(name: str) -> None:
    model, steps, wrong = UNSAFE[name]
    found = explore(model, ENOUGH)
    assert found.wrong is not None, f"no damage {found}"
    assert (len(found.trace), wrong in found.wrong) == (steps, True), str(found)
    tally("unsafe variants")


@pytest.mark.parametrize("name", SMALL)
def test_the_rules_are_enough(name: str) -> None:
    found = explore(SMALL[name], ENOUGH)
    assert found.wrong is None, str(found)
    assert found.exhausted, "a part of the states of a small model was looked at"


class Reaching(NamedTuple):
    """A model in which something is looked for that may well happen."""

    model: Model[Any]
    happens: Callable[[Any], bool]

    def start(self) -> Any:
        return self.model.start()

    def steps(self, state: Any) -> Iterable[tuple[str, Any]]:
        return self.model.steps(state)

    def wrong(self, state: Any) -> str | None:
        return "it happens" if self.happens(state) else None

    def unfinished(self, state: Any) -> str | None:
        return None


def _ends(*steps: str) -> Callable[[decisions.State], bool]:
    return lambda state: tuple(process.step for process in state.processes[:-1]) == steps


REACHED: dict[str, Reaching] = {
    "every operation commits": Reaching(
        SMALL["writers A"], lambda state: len(state.commits) == 2 and all(state.told)
    ),
    "a batch is logged after a crash and a lost answer": Reaching(
        SMALL["sink"], lambda state: bool(state.logged and state.crashes and state.lost)
    ),
    "both writers commit": Reaching(
        SMALL["decisions, one recovers"], _ends("committed", "committed")
    ),
    "one commits and one is refused": Reaching(
        SMALL["decisions, one file group"], _ends("committed", "failed")
    ),
    "a replay finds its batch": Reaching(
        SMALL["decisions, one micro-batch"],
        lambda state: _ends("committed", "committed")(state) and len(state.order) == 1,
    ),
    "a dead writer's decision is carried out": Reaching(
        SMALL["decisions, one file group"],
        lambda state: state.processes[0].step == "dead" and state.order == (1,),
    ),
    "a living writer is rolled back": Reaching(
        SMALL["decisions, one recovers"], _ends("failed", "committed")
    ),
    "a dead writer's rollback is carried out": Reaching(
        SMALL["decisions, one recovers"],
        lambda state: state.processes[1].step == "dead" and any(i.undone for i in state.instants),
    ),
}


@pytest.mark.parametrize("name", REACHED)
def test_promises_are_not_kept_by_doing_nothing(name: str) -> None:
    assert explore(REACHED[name], ENOUGH).wrong == "it happens"


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_the_rules_are_enough_further_on(name: str) -> None:
    found = explore(LARGE[name], ENOUGH)
    assert found.wrong is None, str(found)
    assert found.exhausted == (name in EXHAUSTED), str(found)
    tally("model states", found.states)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", VAST)
def test_the_rules_are_enough_far_on(name: str) -> None:
    found = explore(VAST[name], FAR)
    assert found.wrong is None, str(found)


@pytest.mark.parametrize(
    "module", [writers, sink, decisions, names, guards], ids=lambda module: module.__name__
)
def test_models_name_functions_that_exist(module: Any) -> None:
    rows = [line for line in module.__doc__.splitlines() if line.startswith("|")]
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    code = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    defined = set(re.findall(r"^\s*(?:def|class) (\w+)", code, re.MULTILINE))
    modules = {path.stem for path in PACKAGE.rglob("*.py")}
    assert len(named) > 5
    assert {n for n in named if n.rpartition(".")[2] not in defined | modules} == set()


class Jugs(NamedTuple):
    """Water in a jug of five and in one of three."""

    five: int = 0
    three: int = 0


class Pouring(NamedTuple):
    """The riddle: to have `goal` litres."""

    goal: int = 4
    dead_end: bool = False

    def start(self) -> Jugs:
        return Jugs()

    def steps(self, jugs: Jugs) -> Iterator[tuple[str, Jugs]]:
        if self.dead_end and jugs == Jugs(5, 3):
            return
        yield "fill five", jugs._replace(five=5)
        yield "fill three", jugs._replace(three=3)
        yield "empty five", jugs._replace(five=0)
        yield "empty three", jugs._replace(three=0)
        poured = min(jugs.five, 3 - jugs.three)
        yield "five to three", Jugs(jugs.five - poured, jugs.three + poured)
        poured = min(jugs.three, 5 - jugs.five)
        yield "three to five", Jugs(jugs.five + poured, jugs.three - poured)

    def wrong(self, jugs: Jugs) -> str | None:
        return "it can be done" if jugs.five == self.goal else None

    def unfinished(self, jugs: Jugs) -> str | None:
        return "both are full"


def test_the_shortest_trace_is_found() -> None:
    model: Model[Jugs] = Pouring()
    found = explore(model, ENOUGH)
    fill, pour, empty = "fill five", "five to three", "empty three"
    assert found.trace == (fill, pour, empty, pour, fill, pour)
    assert str(found).startswith("it can be done (")


@pytest.mark.parametrize(
    ("goal", "limit", "states", "exhausted"), [(6, 100, 16, True), (6, 10, 10, False)]
)
def test_states_are_counted_once(goal: int, limit: int, states: int, exhausted: bool) -> None:
    found = explore(Pouring(goal), limit)
    assert (found.states, found.exhausted, found.wrong) == (states, exhausted, None)


def test_a_dead_end_is_found() -> None:
    found = explore(Pouring(6, dead_end=True), 100)
    assert (found.wrong, len(found.trace)) == ("both are full", 2)

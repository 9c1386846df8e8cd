"""The variants that hold, at three sizes, and those with a rule left out, and what that does."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tests.model.decisions import Rules, Turns, Writer
from tests.model.explore import Model
from tests.model.guards import Guards
from tests.model.names import Names
from tests.model.sink import Sink
from tests.model.writers import Writers


class Unsafe(NamedTuple):
    """A variant with a rule left out."""

    model: Model[Any]
    steps: int
    """Length of the shortest way to the damage."""
    wrong: str
    """Part of what is then said."""


# Writers of turns: of one file group, of two, with the same micro-batch, with two tasks.
ONE: Final = Writer(batch=0, group=0, recovers=False)
SAME_GROUP: Final = Writer(batch=1, group=0, recovers=False)
LATER: Final = Writer(batch=2, group=0, recovers=False)
SAME_BATCH: Final = Writer(batch=0, group=1, recovers=False)
RECOVERS: Final = Writer(batch=1, group=1)
ONLY_RECOVERS: Final = Writer(batch=1, group=1, commits=False)
ONLY_SWEEPS: Final = Writer(batch=1, group=1, sweeps=True)
TWO_TASKS: Final = Writer(batch=0, group=0, tasks=2, recovers=False)


def _other(**rules: Any) -> Sink:
    return Sink(other=True, lost=0, attempts=0, **rules)


def _turns(*writers: Writer, crashes: int = 0, early: bool = False, **rules: Any) -> Turns:
    return Turns(writers, Rules(**rules), crashes, early=early)


LOCAL: Final[dict[str, Any]] = {"times": "local clocks"}
LOCKED: Final[dict[str, Any]] = {"control": "pessimistic"}

UNSAFE: Final = {
    # Letters are those of Vanlightly's table.
    "B optimistic, keys not compared": Unsafe(Writers(key_check=False), 14, "read as [1, 2]"),
    "D pessimistic, keys not compared": Unsafe(
        Writers(**LOCKED, key_check=False), 16, "read as [1, 2]"
    ),
    "E no concurrency control": Unsafe(Writers(control="none"), 14, "committed was [1]"),
    "F optimistic on local clocks": Unsafe(Writers(**LOCAL), 12, "committed was [1]"),
    "I pessimistic on local clocks": Unsafe(Writers(**LOCAL, **LOCKED), 16, "read as []"),
    "L put-if-absent alone": Unsafe(
        Writers(control="none", put_if_absent=True), 14, "committed was [1]"
    ),
    "M put-if-absent alone, local clocks": Unsafe(
        Writers(**LOCAL, control="none", put_if_absent=True), 16, "committed was [1]"
    ),
    "no replay check": Unsafe(Sink(replay_check="none"), 14, "parts [0, 0]"),
    "replay check by the newest commit only": Unsafe(
        _other(replay_check="newest only"), 16, "parts [0, 0]"
    ),
    "a writer opens late, and later commits do not know of it": Unsafe(
        _other(refuses_unknown=False), 16, "parts [0, 0]"
    ),
    "abort deletes without a look": Unsafe(Sink(abort_looks=False), 8, "are gone"),
    "unknown is taken for failed": Unsafe(Sink(unknown_is_failed=True), 8, "commit 1 is gone"),
    "readers list folders": Unsafe(
        Sink(reader="lists", drops_extra_files=False), 10, "parts [0, 0]"
    ),
    "readers list folders, extra files are dropped": Unsafe(
        Sink(reader="lists"), 10, "parts [0, 0]"
    ),
    "readers list folders, and tasks look before they write": Unsafe(
        Sink(reader="lists", looks_before_writing=True), 12, "parts [0, 0]"
    ),
    "recovery rolls completed instants back": Unsafe(Sink(rollback_looks=False), 8, "are gone"),
    "a lock with a lease and no turns": Unsafe(
        _turns(ONE, ONLY_RECOVERS, turns=False, lock="lease"), 18, "rows of commit 1 are gone"
    ),
    "a turn is not carried out before the next": Unsafe(
        _turns(ONE, SAME_GROUP, carries_out=False), 22, "lost the update"
    ),
    "rollback without a turn": Unsafe(
        _turns(ONE, ONLY_RECOVERS, rollback_takes_turn=False), 15, "rows of commit 1 are gone"
    ),
    "rollback without a look at the timeline": Unsafe(
        _turns(ONE, ONLY_RECOVERS, rollback_loads=False), 21, "rows of commit 1 are gone"
    ),
    "no heartbeat is dead: no turn, no look": Unsafe(
        _turns(ONE, ONLY_RECOVERS, rollback_takes_turn=False, rollback_loads=False),
        15,
        "rows of commit 1 are gone",
    ),
    "conflicts sought on a timeline older than the turn": Unsafe(
        _turns(ONE, SAME_GROUP, loads_after_turn=False), 23, "lost the update"
    ),
    "conflicts not sought": Unsafe(
        _turns(ONE, SAME_GROUP, checks_conflicts=False), 23, "lost the update"
    ),
    "commits before the first known one count as known": Unsafe(
        _turns(ONE, RECOVERS, LATER, early=True, unseen_by="time"), 23, "lost the update"
    ),
    "a turn without a manifest": Unsafe(
        _turns(ONE, SAME_GROUP, crashes=1, manifest="none"), 16, "can not go on"
    ),
    "no manifest any more is taken for a failed write": Unsafe(
        _turns(ONE, SAME_GROUP, missing_manifest="roll back"), 23, "rows of commit 1 are gone"
    ),
    "a manifest is completed without a turn": Unsafe(
        _turns(ONE, SAME_GROUP, crashes=1, dead_manifest="no turn"), 26, "lost the update"
    ),
    "a dead writer's manifest is completed by a turn, whatever was decided since": Unsafe(
        _turns(ONE, SAME_BATCH, crashes=1, dead_manifest="any turn"), 32, "of one batch"
    ),
    "rollbacks that are complete are not looked for": Unsafe(
        _turns(TWO_TASKS, RECOVERS, checks_rollbacks="pending"), 39, "rows of commit 1 are gone"
    ),
    "a deleted turn is taken again": Unsafe(
        _turns(ONE, RECOVERS, lists_turns_again=False), 34, "rows of commit 1 are gone"
    ),
    "a turn is taken: the next one is tried": Unsafe(
        _turns(ONE, SAME_GROUP, looks_again=False), 23, "lost the update"
    ),
    "replays sought before the turn only": Unsafe(
        _turns(ONE, SAME_BATCH, checks_replay_in_turn=False), 23, "of one batch"
    ),
    "a rollback takes a time by its name": Unsafe(
        _turns(ONE, RECOVERS, rollback_time="by its name"), 23, "a write and of a rollback"
    ),
    "a rollback claims a time and lets it go": Unsafe(
        _turns(ONE, RECOVERS, rollback_time="claimed, let go"), 27, "a write and of a rollback"
    ),
    "a rollback claims a time and does not look at the timeline": Unsafe(
        _turns(ONE, RECOVERS, rollback_time="claimed"), 33, "a commit and of a rollback"
    ),
    "names that attempts share, and a writer that goes on": Unsafe(
        Names(own_names=False, recoveries=1), 9, "log file is gone"
    ),
    "names that attempts share, and a recovery that goes on": Unsafe(
        Names(own_names=False, late_writer=False), 9, "log file is gone"
    ),
    "what is put aside of writers counts for ever": Unsafe(
        Guards(of_a_commit=False), 6, "was taken back counts"
    ),
    "what is put aside of a writer is all that is kept": Unsafe(
        Guards(keeps_older=False), 9, "is forgotten"
    ),
    "commits that tell of those of later times": Unsafe(
        Guards(at_its_time=False), 5, "was taken back counts"
    ),
    "a restore that does not ask the archive": Unsafe(
        Guards(asks_archive=False), 6, "is forgotten"
    ),
    "what the log carries counts for ever": Unsafe(
        Guards(carried_at=False), 4, "was taken back counts"
    ),
    "a follower takes in what writers complete, not what others do": Unsafe(
        _turns(ONE, SAME_GROUP, crashes=1, follower="before, of writers"), 18, "does not know"
    ),
    "a follower takes an instant in once it is visible": Unsafe(
        _turns(ONE, SAME_GROUP, follower="after"), 11, "does not know"
    ),
    "a follower takes an instant in before it is decided": Unsafe(
        _turns(ONE, ONLY_RECOVERS, follower="undecided"), 19, "has taken 1 in"
    ),
    "sweep of folders that were listed, with what is in them by then": Unsafe(
        _turns(ONE, ONLY_SWEEPS, sweeps="folders"), 14, "rows of commit 1 are gone"
    ),
}

# What holds: a letter of the table and its rules.
WRITERS: Final[dict[str, dict[str, Any]]] = {
    "A optimistic": {},
    "C pessimistic": LOCKED,
    "G optimistic on local clocks, put-if-absent": {**LOCAL, "put_if_absent": True},
    "H optimistic on local clocks, salt": {**LOCAL, "salt": True},
    "J pessimistic on local clocks, put-if-absent": {**LOCAL, **LOCKED, "put_if_absent": True},
    "K pessimistic on local clocks, salt": {**LOCAL, **LOCKED, "salt": True},
}

SMALL: Final[dict[str, Model[Any]]] = {
    "writers A": Writers(operations=2, crashes=1),
    "sink": Sink(),
    "names": Names(),
    "guards": Guards(),
    "decisions, one file group": Turns((ONE, SAME_GROUP)),
    "decisions, one recovers": Turns((ONE, RECOVERS)),
    "decisions, one micro-batch": Turns((ONE, SAME_BATCH)),
    "decisions, a dead writer's manifest": Turns(
        (ONE, SAME_GROUP), Rules(dead_manifest="the next turn")
    ),
    "decisions, early time": Turns((ONE, RECOVERS, LATER), early=True),
    "decisions, sweep": Turns((ONE, ONLY_SWEEPS)),
    "decisions, a follower": Turns((ONE, SAME_GROUP), Rules(follower="before")),
    "decisions, a follower, one recovers": Turns((ONE, RECOVERS), Rules(follower="before")),
    "decisions, a follower, a dead writer's manifest": Turns(
        (ONE, SAME_GROUP), Rules(follower="before", dead_manifest="the next turn")
    ),
    "a lock that ends with its holder's death, and no turns": Turns(
        (ONE, SAME_GROUP), Rules(turns=False, lock="until death"), crashes=0
    ),
}

BOTH: Final = (Writer(0, 0, tasks=2), Writer(1, 0, tasks=2))
THREE: Final = (Writer(0, 0), Writer(1, 0), Writer(0, 1))

LARGE: Final[dict[str, Model[Any]]] = {
    **{f"writers {k}": Writers(operations=4, crashes=1, **v) for k, v in WRITERS.items()},
    "sink, another writer": Sink(other=True),
    "sink, two micro-batches of two parts": Sink(batches=2, parts=2),
    "guards, five instants": Guards(instants=5),
    "decisions, two tasks each": Turns(BOTH, crashes=2, lost=1),
    "decisions, three writers": Turns(THREE),
    "decisions, dead writers' manifests": Turns(
        BOTH, Rules(dead_manifest="the next turn"), crashes=2, lost=1
    ),
    "decisions, a sweep beside two writers": Turns((*BOTH, ONLY_SWEEPS)),
    "decisions, a follower": Turns(BOTH, Rules(follower="before"), crashes=2, lost=1),
}

VAST: Final[dict[str, Model[Any]]] = {
    **{
        f"writers {k}": Writers(writers=3, operations=5, crashes=1, **v) for k, v in WRITERS.items()
    },
    "sink, another writer": Sink(batches=2, parts=2, other=True),
    "sink, crashes": Sink(batches=2, parts=2, crashes=2, lost=2, attempts=2),
    "decisions, three writers that live": Turns((ONE, SAME_GROUP, Writer(2, 1)), crashes=0),
    "decisions, three writers": Turns(THREE, crashes=2, lost=1),
    "decisions, three writers of a file group": Turns(
        (Writer(0, 0, tasks=2), Writer(1, 0, tasks=2), Writer(2, 0)), crashes=2, lost=1
    ),
    "decisions, a sweep beside two writers": Turns((*BOTH, ONLY_SWEEPS), crashes=2, lost=1),
}

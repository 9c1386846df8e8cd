"""Turns: who may decide next."""

from __future__ import annotations

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import TURNS, numbered_path
from hoodie_ds.transaction.decision_log import (
    Decision,
    Turn,
    following_turn,
    newest_turn,
    take_turn,
)

INSTANT = Instant("20250101000000000", Action.COMMIT, State.INFLIGHT)
BODY = Turn(1, Decision.COMPLETE, INSTANT, "a").to_bytes()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        BODY[:-1],
        b"[1]",
        b"[" * 100_000,
        BODY.replace(b'"by"', b'"of"'),
        BODY.replace(b"complete", b"wait"),
        BODY.replace(b'"commit"', b'"merge"'),
        BODY.replace(b"{}", b"[]"),
    ],
)
def test_a_turn_that_no_writer_wrote_is_damage_and_named(body: bytes) -> None:
    path = numbered_path(TURNS, 1)
    with pytest.raises(CorruptFileError, match=f"{path} is not a turn"):
        newest_turn(MemoryStorage(files={path: body}))


def test_a_name_that_is_free_again_after_many_turns_gives_no_turn() -> None:
    storage = MemoryStorage()
    late = following_turn(newest_turn(storage), Decision.ROLL_BACK, INSTANT, "late")
    for number in range(25):
        turn = following_turn(newest_turn(storage), Decision.COMPLETE, INSTANT, f"other {number}")
        assert take_turn(storage, turn)
    assert numbered_path(TURNS, late.number) not in storage.files
    assert not take_turn(storage, late)
    newest = newest_turn(storage)
    assert newest is not None
    assert (newest.number, newest.taken_by) == (25, "other 24")

"""Turns: who may decide next."""

from __future__ import annotations

import pytest

from hoodie_ds.errors import CommitOutcomeUnknownError, CorruptFileError
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import DECISIONS, numbered_path
from hoodie_ds.transaction.decision_log import (
    Decision,
    Outcome,
    append_decision,
    newest_decision,
    next_decision,
)

INSTANT = Instant("20250101000000000", Action.COMMIT, State.INFLIGHT)
BODY = Decision(1, Outcome.COMPLETE, INSTANT, "a").to_bytes()


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
        BODY.replace(b"{}", b'{}, "plan": "?"'),
        BODY.replace(b"{}", b'{}, "plan": 1'),
    ],
)
def test_a_damaged_decision_is_refused_with_its_path(body: bytes) -> None:
    path = numbered_path(DECISIONS, 1)
    with pytest.raises(CorruptFileError, match=f"{path} is not a logged decision"):
        newest_decision(MemoryStorage(files={path: body}))


def test_a_number_that_is_free_again_after_many_decisions_appends_nothing() -> None:
    storage = MemoryStorage()
    late = next_decision(newest_decision(storage), Outcome.ROLL_BACK, INSTANT, "late")
    for number in range(25):
        decision = next_decision(
            newest_decision(storage), Outcome.COMPLETE, INSTANT, f"other {number}"
        )
        assert append_decision(storage, decision)
    assert numbered_path(DECISIONS, late.number) not in storage.files
    assert not append_decision(storage, late)
    newest = newest_decision(storage)
    assert newest is not None
    assert (newest.number, newest.decided_by) == (25, "other 24")


def test_a_storage_that_lists_no_file_that_was_put_was_a_value_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(*_: object, **__: object) -> list[FileStatus]:
        return []

    storage = MemoryStorage("memory://turns")
    monkeypatch.setattr(MemoryStorage, "list", nothing)
    with pytest.raises(CommitOutcomeUnknownError, match="lists no decision at all"):
        append_decision(storage, Decision(1, Outcome.COMPLETE, INSTANT, "a"))

"""What became of a put on which a commit hangs."""

from __future__ import annotations

import pytest

from hoodie_ds.errors import CommitOutcomeUnknownError, StorageError, UnavailableError
from hoodie_ds.storage.decisive_put import put_decisively
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, Operation

PUT = frozenset({Kind.PUT})


def test_a_put_that_was_answered() -> None:
    storage = MemoryStorage()
    assert put_decisively(storage, "f", b"mine")
    assert put_decisively(storage, "f", b"mine")
    assert not put_decisively(storage, "f", b"another's")
    assert storage.files == {"f": b"mine"}


def test_a_put_whose_answer_was_lost() -> None:
    faulty = FaultyStorage(MemoryStorage(), [Fault(Effect.LOST_ANSWER, kinds=PUT)])
    assert put_decisively(faulty, "f", b"mine")


def test_a_put_that_failed() -> None:
    storage = MemoryStorage()
    faulty = FaultyStorage(storage, [Fault(Effect.FAILED, kinds=PUT)])
    with pytest.raises(StorageError, match="failed"):
        put_decisively(faulty, "f", b"mine")
    assert not storage.files


@pytest.mark.parametrize("unreadable", [False, True])
def test_a_put_that_may_still_arrive_has_an_unknown_outcome(unreadable: bool) -> None:
    def no_answer(operation: Operation) -> None:
        if operation.kind is Kind.PUT or unreadable:
            raise UnavailableError("no answer")

    with pytest.raises(CommitOutcomeUnknownError, match="nothing was deleted"):
        put_decisively(FaultyStorage(MemoryStorage(), before_each=no_answer), "f", b"mine")

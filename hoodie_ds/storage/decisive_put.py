"""Puts that decide about a commit: their outcome is checked, never guessed."""

from __future__ import annotations

from hoodie_ds.errors import (
    CommitOutcomeUnknownError,
    NotFoundError,
    StorageError,
    UnavailableError,
)
from hoodie_ds.storage.protocol import Storage


def put_decisively(storage: Storage, path: str, body: bytes) -> bool:
    """Put a file that decides about a commit, if its name is free.

    `body` is a content that no other process would put there. Returns whether the file has it;
    False if another writer's file has the name. A `StorageError` means that the file is not there
    and never will be, a `CommitOutcomeUnknownError` that this could not be determined.
    """
    try:
        storage.put_if_absent(path, body)
    except StorageError as error:
        # The put may have taken effect although its answer was lost: the stored content decides.
        try:
            return storage.read(path) == body
        except StorageError as unreadable:
            # A missing file is not conclusive: a request without an answer may still arrive.
            if isinstance(unreadable, NotFoundError) and not isinstance(error, UnavailableError):
                raise error from None
            raise CommitOutcomeUnknownError(
                f"{storage.root}/{path}: the answer to the put was lost ({error}) and reading it "
                f"back failed ({unreadable}); nothing was deleted, and the next write of the "
                "table finds out"
            ) from error
    return True

"""Puts on which a commit hangs: what became of them is found out, and never guessed."""

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

    Parameters
    ----------
    storage : Storage
        Where to.
    path : str
        The file.
    body : bytes
        A content that nobody else would put there.

    Returns
    -------
    bool
        Whether the file is there with this content; False if another writer's is.

    Raises
    ------
    StorageError
        It is not there, and will not be.
    CommitOutcomeUnknownError
        Whether it is there could not be found out.
    """
    try:
        storage.put_if_absent(path, body)
    except StorageError as error:
        # The put may have taken effect although its answer was lost: what counts is what is there.
        try:
            return storage.read(path) == body
        except StorageError as unreadable:
            # Not there yet says little: a request without an answer may still arrive.
            if isinstance(unreadable, NotFoundError) and not isinstance(error, UnavailableError):
                raise error from None
            raise CommitOutcomeUnknownError(
                f"{storage.root}/{path}: the answer to the commit was lost ({error}) and reading "
                f"it back failed ({unreadable}); nothing was deleted, the next start of the query "
                "finds out"
            ) from error
    return True

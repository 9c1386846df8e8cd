"""Claims: how one action takes an instant time, whatever its name on the timeline will be."""

from __future__ import annotations

from contextlib import suppress

from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import claim_path


def claim(storage: Storage, time: str, owner: str) -> bool:
    """Take an instant time, or find that the same owner has it.

    The names on the timeline alone would let two actions share a time (promise P5).

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    time : str
        Instant time.
    owner : str
        Who takes it.

    Returns
    -------
    bool
        False if it is taken by another.
    """
    path = claim_path(time)
    with suppress(AlreadyExistsError):
        storage.put_if_absent(path, owner.encode())
        return True
    with suppress(NotFoundError):
        return storage.read(path) == owner.encode()
    return False

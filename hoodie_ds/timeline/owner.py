"""Who opened a pending instant: the entry of its inflight file by which its writer knows it."""

from __future__ import annotations

import json

from hoodie_ds.errors import NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import instant_path


def owner_of(storage: Storage, inflight: Instant) -> str | None:
    """Return who opened an instant; None if it is gone or another engine's."""
    path = instant_path(inflight)
    try:
        return CommitMetadata.from_bytes(storage.read(path), path).extra.get(OWNER_KEY)
    except NotFoundError:
        return None


def owner_text(query_id: str, attempt: str, shared: bool = False) -> str:
    """Return the owner entry of a batch: its query and the attempt to write it.

    Parameters
    ----------
    query_id : str
        The streaming query, if it is known.
    attempt : str
        A text that no other attempt has.
    shared : bool
        Whether there are several writers, so that a whole manifest is not enough to commit.
    """
    entries = {"query": query_id, "attempt": attempt, **({"shared": True} if shared else {})}
    return json.dumps(entries, sort_keys=True)


def is_of_several(owner: str) -> bool:
    """Whether an owner entry is that of one of several writers; see `owner_text`."""
    try:
        entries = json.loads(owner)
    except (ValueError, RecursionError):
        return False
    return isinstance(entries, dict) and entries.get("shared") is True

"""Ownership of instants: claims of instant times, and the owner entry of inflight files."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Final

from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import begun_path, claim_path, instant_path

_SHARED: Final = "shared"
_SPANS: Final = "spans"


def owner_of(storage: Storage, inflight: Instant) -> str | None:
    """Return the owner entry of an instant; None if it is gone or another engine's."""
    path = instant_path(inflight)
    try:
        data = storage.read(path)
    except NotFoundError:
        return None
    # The inflight file of a clustering is empty.
    return CommitMetadata.from_bytes(data, path).extra.get(OWNER_KEY) if data else None


def owner_entry(query_id: str, attempt: str, shared: bool = False, spans: bool = False) -> str:
    """Return the owner entry of a batch: its query and the attempt to write it.

    With `shared` there are several writers, so a manifest alone is not enough to commit; with
    `spans` the instant takes several micro-batches, so none of its manifests may be lost.
    """
    marks = {name: True for name, is_so in ((_SHARED, shared), (_SPANS, spans)) if is_so}
    return json.dumps({"query": query_id, "attempt": attempt, **marks}, sort_keys=True)


def is_of_several(owner: str) -> bool:
    """Whether an owner entry has the mark `shared`; see `owner_entry`."""
    return _is_marked(owner, _SHARED)


def takes_several_batches(owner: str) -> bool:
    """Whether an owner entry has the mark `spans`; see `owner_entry`."""
    return _is_marked(owner, _SPANS)


def _is_marked(owner: str, mark: str) -> bool:
    try:
        entries = json.loads(owner)
    except (ValueError, RecursionError):
        return False
    return isinstance(entries, dict) and entries.get(mark) is True


def is_claimed(storage: Storage, time: str) -> bool:
    """Whether a process of this library holds the claim of an instant time."""
    return _is_there(storage, claim_path(time))


def mark_begun(storage: Storage, time: str) -> None:
    """Mark that this library carries out the plan at an instant time."""
    with suppress(AlreadyExistsError):
        storage.put_if_absent(begun_path(time), b"")


def is_begun(storage: Storage, time: str) -> bool:
    """Whether this library carries out the plan at an instant time; see `mark_begun`."""
    return _is_there(storage, begun_path(time))


def _is_there(storage: Storage, path: str) -> bool:
    with suppress(NotFoundError):
        storage.read(path)
        return True
    return False


def claim(storage: Storage, time: str, owner: str) -> bool:
    """Claim an instant time for an owner; returns False if another owner has it.

    The names on the timeline alone would let two actions share a time (promise P5).
    """
    path = claim_path(time)
    with suppress(AlreadyExistsError):
        storage.put_if_absent(path, owner.encode())
        return True
    with suppress(NotFoundError):
        return storage.read(path) == owner.encode()
    return False

"""A Delta log: its versions, the state after them, and the next one (Delta protocol, "actions").

A version is a file with the next number, put if absent by the table's own storage, as the Hudi
commits of this library are. So it adds and removes files and records the sync point in one step.
The newest version has the sync point, so no older one is read to write the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from hoodie_ds.errors import DeltaSyncError, NotFoundError
from hoodie_ds.storage.decisive_put import put_decisively
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.sync.delta.checkpoint import read_checkpoint, write_checkpoint
from hoodie_ds.sync.delta.columns import WRITER_FEATURE
from hoodie_ds.sync.delta.files import Action

LOG: Final = "_delta_log"
_VERSION: Final = re.compile(r"(\d{20})\.(json|checkpoint\.parquet)")
_LAST: Final = f"{LOG}/_last_checkpoint"
_STATE: Final = "hoodiePy"
_LISTS: Final = ("after", "pending", "checkpoints")
_FEWEST: Final = 50
_FILES_A_VERSION: Final = 100
_KEPT: Final = 3


@dataclass(frozen=True, slots=True)
class SyncPoint:
    """The commits that a version of the log covers, as recorded in its ``commitInfo``."""

    instant: str = ""
    up_to: str = ""
    after: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    num_files: int = 0
    meta: str = ""
    checkpoints: tuple[int, ...] = ()
    batches: Mapping[str, int] = field(default_factory=dict)
    table_id: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest version of a log; `synced` is None if this library did not write it."""

    version: int = -1
    synced: SyncPoint | None = None
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class Snapshot:
    """The state of a Delta table after the versions of its log."""

    files: dict[str, Action] = field(default_factory=dict)
    batches: dict[str, Action] = field(default_factory=dict)
    meta: Action | None = None
    protocol: Action | None = None

    def apply(self, action: Mapping[str, Action]) -> None:
        """Apply an action."""
        for kind, body in action.items():
            if kind == "add":
                self.files[body["path"]] = body
            elif kind == "remove":
                self.files.pop(body["path"], None)
            elif kind == "txn":
                self.batches[body["appId"]] = body
            elif kind == "metaData":
                self.meta = body
            elif kind == "protocol":
                self.protocol = body

    @property
    def actions(self) -> list[dict[str, Action]]:
        """The actions that make this state."""
        return [
            {"protocol": self.protocol or {}},
            {"metaData": self.meta or {}},
            *({"txn": one} for one in self.batches.values()),
            *({"add": one} for one in self.files.values()),
        ]


def read_head(storage: Storage) -> Head:
    """Return the newest version of a table's log."""
    names = tuple(status.path.rpartition("/")[2] for status in storage.list(LOG))
    found = [int(name[:20]) for name in names if name.endswith(".json") and _VERSION.match(name)]
    if not found:
        return Head(names=names)
    version = max(found)
    synced = None
    for action in read_version(storage, version):
        state = action.get("commitInfo", {}).get(_STATE)
        if state is not None:
            lists = {name: tuple(state.get(name, ())) for name in _LISTS}
            synced = SyncPoint(**{**state, **lists})
    return Head(version, synced, names)


def read_version(storage: Storage, version: int) -> list[dict[str, Action]]:
    """Return the actions of a version."""
    path = _path(version)
    try:
        lines = storage.read(path).decode().splitlines()
        return [action for action in map(json.loads, filter(None, lines)) if action]
    except (NotFoundError, ValueError, RecursionError) as error:
        raise DeltaSyncError(
            f"{storage.root}/{path} cannot be read ({error}); delete {LOG} and sync again, which "
            "makes a new log of the current table"
        ) from error


def read_snapshot(storage: Storage, head: Head) -> Snapshot:
    """Return the state after a log, from its newest checkpoint and the versions after it."""
    snapshot, first = Snapshot(), 0
    of_checkpoints = [name for name in head.names if name.endswith(".checkpoint.parquet")]
    if of_checkpoints:
        first = int(max(of_checkpoints)[:20]) + 1
        for action in read_checkpoint(storage.read(f"{LOG}/{max(of_checkpoints)}")):
            snapshot.apply(action)
    for version in range(first, head.version + 1):
        for action in read_version(storage, version):
            snapshot.apply(action)
    features = (snapshot.protocol or {}).get("writerFeatures") or ()
    if head.version >= 0 and WRITER_FEATURE not in features:
        raise DeltaSyncError(
            f"{storage.root}/{LOG} is the log of a Delta table that this library did not create; "
            "omit hoodie.py.delta.sync, or give the Hudi table its own folder"
        )
    return snapshot


def put_version(
    storage: Storage, head: Head, actions: Iterable[Action], info: Action, synced: SyncPoint
) -> bool:
    """Put the version after the newest one; returns False if another process was faster."""
    lines = [{"commitInfo": {**info, _STATE: asdict(synced)}}, *actions]
    body = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    return put_decisively(storage, _path(head.version + 1), f"{body}\n".encode())


def with_checkpoint(head: Head, synced: SyncPoint) -> SyncPoint:
    """Return the next version's sync point, with a checkpoint if one is due.

    Large tables have them more rarely, so that the cost for each version is about the same.
    """
    last = synced.checkpoints[-1] if synced.checkpoints else 0
    due = max(_FEWEST, synced.num_files // _FILES_A_VERSION)
    if head.version + 1 - last < due:
        return synced
    kept = (*synced.checkpoints, head.version + 1)[-_KEPT:]
    return replace(synced, checkpoints=kept)


def tidy(storage: Storage, head: Head, synced: SyncPoint) -> None:
    """Write the checkpoint of the newest version if it is due, and delete old versions.

    Versions since the third newest checkpoint stay. Nothing depends on this step.
    """
    version = head.version + 1
    if not synced.checkpoints or synced.checkpoints[-1] != version:
        return
    snapshot = read_snapshot(storage, Head(version, synced, head.names))
    body, rows = write_checkpoint(snapshot.actions)
    storage.replace(f"{LOG}/{version:020d}.checkpoint.parquet", body)
    storage.replace(_LAST, json.dumps({"version": version, "size": rows}).encode())
    written = [name for name in head.names if name.endswith(".checkpoint.parquet")]
    if len(synced.checkpoints) == _KEPT and len(written) >= _KEPT - 1:
        first = sorted(written)[1 - _KEPT][:20]
        old = [n for n in head.names if _VERSION.fullmatch(n) and n[:20] < first]
        storage.delete_many([f"{LOG}/{name}" for name in old])


def _path(version: int) -> str:
    return f"{LOG}/{version:020d}.json"

"""Tables on which a writer died, and a storage that dies at a chosen operation."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, encode_block
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.table import Table, create_table
from hoodie_ds.timeline.bodies.commit_metadata import OWNER_KEY, CommitMetadata, WriteStat
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path, marker_path

DONE, FAILED, NOW = "20250101000000000", "20250102000000000", 1_767_225_600_000  # 2026-01-01
GROUP = "0" * 8
OLD_BASE = f"p/{GROUP}_0-1-1_{DONE}.parquet"
NEW_BASE = f"p/{GROUP}_0-2-2_{FAILED}.parquet"
OTHER_BASE = f"q/{GROUP}_1-2-2_{FAILED}.parquet"
MIXED_LOG = f"p/.{GROUP}_{DONE}.log.1_0-2-2"
PURE_LOG = f"p/.{GROUP}_{DONE}.log.2_0-2-2"

Result = TypeVar("Result")


class KilledError(BaseException):
    """Stands for the end of the process: nothing in the library may catch it."""


@dataclass(frozen=True)
class FixedClock:
    ms: int = NOW

    def now_ms(self) -> int:
        return self.ms


class DyingStorage:
    """Passes operations on, and dies before or after the n-th."""

    def __init__(self, inner: Storage, operation: int, *, after: bool) -> None:
        self._inner = inner
        self._left = operation
        self._after = after

    @property
    def root(self) -> str:
        return self._inner.root

    def _do(self, operation: Callable[[], Result]) -> Result:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise KilledError
        try:
            return operation()
        finally:  # an operation that fails may be the last one too
            if self._left == 0:
                raise KilledError

    def read(self, path: str) -> bytes:
        return self._do(lambda: self._inner.read(path))

    def open_input(self, path: str) -> BinaryIO:
        return self._do(lambda: self._inner.open_input(path))

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._do(lambda: self._inner.open_output(path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._do(lambda: self._inner.put_if_absent(path, data))

    def replace(self, path: str, data: bytes) -> None:
        self._do(lambda: self._inner.replace(path, data))

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        return self._do(lambda: self._inner.list(path, recursive, folders=folders))

    def delete(self, path: str) -> None:
        self._do(lambda: self._inner.delete(path))

    def delete_many(self, paths: Collection[str]) -> None:
        for path in paths:
            self.delete(path)


def new_table(storage: Storage, **options: str) -> Table:
    raw = {
        "path": "/t",
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "uuid",
        **{key.replace("__", "."): value for key, value in options.items()},
    }
    return create_table(storage, TableProperties.create(WriteOptions.parse(raw)), NOW)


def commit_body(*paths: str, owner: str | None = None) -> bytes:
    stats = tuple(WriteStat(GROUP, path, path.rpartition("/")[0]) for path in paths)
    extra = {} if owner is None else {OWNER_KEY: owner}
    return CommitMetadata(stats, "UPSERT", extra).to_bytes(1)


def begin(table: Table, time: str, action: Action = Action.COMMIT, *, ours: bool = True) -> Instant:
    """Put a pending instant; another engine's inflight file names no owner."""
    instant = Instant(time, action, State.INFLIGHT)
    table.storage.put_if_absent(instant_path(instant.at(State.REQUESTED)), b"")
    table.storage.put_if_absent(instant_path(instant), commit_body(owner="me" if ours else None))
    return instant


def commit(table: Table, time: str, *paths: str, action: Action = Action.COMMIT) -> Instant:
    completed = begin(table, time, action).at(State.COMPLETED)
    table.storage.put_if_absent(instant_path(completed), commit_body(*paths))
    return completed


def put_file(table: Table, path: str, data: bytes = b"x", marker: str | None = None) -> None:
    """Put a data file; with the instant time of a marker, announce it first."""
    if marker is not None:
        table.storage.put_if_absent(marker_path(marker, path, "CREATE"), b"")
    table.storage.put_if_absent(path, data)


def data_block(time: str) -> bytes:
    return encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: time}, b"")


def files(storage: Storage) -> Mapping[str, bytes]:
    """All files of a table with their content."""
    return {found.path: storage.read(found.path) for found in storage.list("", recursive=True)}


def data_files(storage: Storage) -> list[str]:
    """Paths of the files outside ``.hoodie``."""
    return [path for path in files(storage) if not path.startswith(".hoodie/")]

"""Connections to file systems, cached for the next operation as long as they work.

A file system's library looks for credentials and endpoints once, when a connection is made. A
refused connection is not cached, so that the next operation uses what the user has set since.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import fsspec

from hoodie_ds.errors import AccessDeniedError, AlreadyExistsError, NotFoundError, StorageError

S3: Final = ("s3", "s3a")

_MOST: Final = 16

_Key = tuple[str, tuple[tuple[str, str], ...], int]

_lock = threading.Lock()
_open: dict[_Key, Any] = {}
_proven: set[_Key] = set()


def file_system(scheme: str, options: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Return the file system of a scheme; the child of a fork makes its own."""
    key = _key(scheme, options)
    system = _open.get(key)
    if system is None:
        made = _connect(scheme, {name: argument(value) for name, value in options.items()})
        with _lock:
            while len(_open) >= _MOST:
                _forget(next(iter(_open)))
            system = _open.setdefault(key, made)
    return system


def worked(scheme: str, options: Mapping[str, str]) -> None:
    """Note that a connection has returned an answer."""
    _proven.add(_key(scheme, options))


def failed(scheme: str, options: Mapping[str, str], error: type[StorageError]) -> None:
    """Note that an operation failed; a connection that may be the cause is dropped."""
    key = _key(scheme, options)
    if issubclass(error, (NotFoundError, AlreadyExistsError)):
        _proven.add(key)
    elif issubclass(error, AccessDeniedError) or key not in _proven:
        with _lock:
            _forget(key)


def argument(value: str) -> object:
    """Return what an option's string means: a boolean, a JSON object, or the string."""
    lower = value.strip().lower()
    if lower in ("true", "false"):
        return lower == "true"
    if lower.startswith("{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _key(scheme: str, options: Mapping[str, str]) -> _Key:
    return scheme, tuple(sorted(options.items())), os.getpid()


def _forget(key: _Key) -> None:
    _open.pop(key, None)
    _proven.discard(key)


def _connect(scheme: str, arguments: dict[str, object]) -> Any:  # noqa: ANN401
    """Make a file system.

    fsspec's cache would return a failed one again, and is shared with other code of the process.
    The S3 library's two layers of retries are off: they would repeat a conditional put whose answer
    was lost, and then report the name as taken by another writer.
    """
    fresh = {"use_listings_cache": False, "skip_instance_cache": True}
    if scheme not in S3:
        return fsspec.filesystem(scheme, **fresh, **arguments)
    given = arguments.pop("config_kwargs", None)
    config = {**(given if isinstance(given, dict) else {}), "retries": {"total_max_attempts": 1}}
    system = fsspec.filesystem(scheme, **fresh, config_kwargs=config, **arguments)
    system.retries = 1
    return system

"""Connections to file systems, kept for the next operation as long as they work.

A file system's library looks for credentials and endpoints once, when a connection is made. One
that was refused is not kept, so that what the user sets then is heeded by the next operation.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import Any, Final

import fsspec

from hoodie_ds.errors import AccessDeniedError, AlreadyExistsError, NotFoundError, StorageError

S3: Final = ("s3", "s3a")
"""Schemes of S3."""

_MOST: Final = 16

_Key = tuple[str, tuple[tuple[str, str], ...], int]

_lock = threading.Lock()
_open: dict[_Key, Any] = {}
_proven: set[_Key] = set()


def file_system(scheme: str, options: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Return the file system of a scheme; after a fork the child makes its own.

    Parameters
    ----------
    scheme : str
        As fsspec knows it.
    options : mapping of str to str
        Arguments of the file system's class.
    """
    key = _key(scheme, options)
    system = _open.get(key)
    if system is None:
        made = _connect(scheme, {name: argument(text) for name, text in options.items()})
        with _lock:
            while len(_open) >= _MOST:
                _forget(next(iter(_open)))
            system = _open.setdefault(key, made)
    return system


def worked(scheme: str, options: Mapping[str, str]) -> None:
    """Note that a connection has brought an answer."""
    _proven.add(_key(scheme, options))


def failed(scheme: str, options: Mapping[str, str], error: type[StorageError]) -> None:
    """Note that an operation failed; a connection that may be to blame is not used again."""
    key = _key(scheme, options)
    if issubclass(error, (NotFoundError, AlreadyExistsError)):
        _proven.add(key)
    elif issubclass(error, AccessDeniedError) or key not in _proven:
        with _lock:
            _forget(key)


def argument(text: str) -> object:
    """Return what the text of an option means: a boolean, a JSON object, or the text."""
    lower = text.strip().lower()
    if lower in ("true", "false"):
        return lower == "true"
    if lower.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _key(scheme: str, options: Mapping[str, str]) -> _Key:
    return scheme, tuple(sorted(options.items())), os.getpid()


def _forget(key: _Key) -> None:
    _open.pop(key, None)
    _proven.discard(key)


def _connect(scheme: str, arguments: dict[str, object]) -> Any:  # noqa: ANN401
    """Make a file system.

    Not from fsspec's cache, which would give a failed one again, and which others in this process
    use too. The S3 library's two layers of retries are off: they would repeat a conditional put
    whose answer was lost, and then report the name as taken by somebody else.
    """
    fresh = {"use_listings_cache": False, "skip_instance_cache": True}
    if scheme not in S3:
        return fsspec.filesystem(scheme, **fresh, **arguments)
    given = arguments.pop("config_kwargs", None)
    config = {**(given if isinstance(given, dict) else {}), "retries": {"total_max_attempts": 1}}
    system = fsspec.filesystem(scheme, **fresh, config_kwargs=config, **arguments)
    system.retries = 1
    return system

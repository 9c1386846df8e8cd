"""Connections to file systems, cached for the next operation as long as they work.

A file system's library looks for credentials and endpoints once, when a connection is made. A
refused connection is not cached, so that the next operation uses what the user has set since.

Invariant: the user's credentials (keys, tokens, passwords) never appear in a message.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from hoodie_ds.config.file_options import STORAGE_OPTION_PREFIX
from hoodie_ds.config.secret_values import shown as shown_value
from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    HoodieError,
    NotFoundError,
    OptionError,
    StorageError,
)
from hoodie_ds.storage.foreign_errors import chained, meaning, remedy, shown
from hoodie_ds.storage.secrets import holds_any, masked, secrets_among

_MOST: Final = 16

_PANIC: Final = "PanicException"
"""What Python sees of a panic of a library in Rust; it is no `Exception`, and nobody catches it."""

_Key = tuple[str, tuple[tuple[str, str], ...], int]

_lock = threading.Lock()
_open: dict[_Key, Any] = {}
_proven: set[_Key] = set()

_users: set[tuple[str, int]] = set()
"""Libraries with threads of their own, each with this process and those that it was forked from."""


@contextmanager
def connection(
    place: str,
    options: Mapping[str, str],
    connect: Callable[[str, Mapping[str, str]], Any],
    what: str,
    plain: Callable[[Exception], Exception] = lambda error: error,
) -> Iterator[Any]:
    """Yield a connection for a call that is said to fail as `what`, with a typed error.

    `connect` makes it if there is none; the child of a fork makes its own. `plain` returns one of
    Python's errors for one of a library that has its meaning in its text.
    """
    with _Translation(place, options, what, plain):
        yield _connection(place, options, connect)
        _proven.add(_key(place, options))


@dataclass(frozen=True, slots=True)
class _Translation:
    """Turns any error of a file system's library into a `StorageError` without secrets."""

    place: str
    options: Mapping[str, str]
    what: str
    plain: Callable[[Exception], Exception]

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and type(error).__name__ == _PANIC:
            error = RuntimeError(str(error))
        if not isinstance(error, Exception) or isinstance(error, HoodieError):
            return
        plain = self.plain(error)
        kind_of_ours = meaning(plain)
        failed(self.place, self.options, kind_of_ours)
        secrets = secrets_among({name: argument(text) for name, text in self.options.items()})
        message = f"{self.what}: {masked(shown(plain), secrets)}{remedy(plain)}"
        # The original error is chained only if nothing in it holds what the message must not.
        safe = not any(holds_any(str(link), secrets) for link in chained(error))
        raise kind_of_ours(message) from (error if safe else None)


def _connection(
    place: str,
    options: Mapping[str, str],
    connect: Callable[[str, Mapping[str, str]], Any],
) -> Any:  # noqa: ANN401
    key = _key(place, options)
    found = _open.get(key)
    if found is None:
        made = connect(place, options)
        with _lock:
            while len(_open) >= _MOST:
                _forget(next(iter(_open)))
            found = _open.setdefault(key, made)
    return found


def refuse_fork(library: str) -> None:
    """Note that this process uses a library, whose threads the child of a fork would wait for."""
    user = (library, os.getpid())
    if user not in _users and any(name == library for name, _ in _users):
        raise StorageError(
            f"{library} would hang in this process, which was forked from one that uses it: start "
            "processes by spawn or forkserver"
        )
    _users.add(user)


def failed(place: str, options: Mapping[str, str], error: type[StorageError]) -> None:
    """Note that an operation failed; a connection that may be the cause is dropped."""
    key = _key(place, options)
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


def refused(name: str, options: Mapping[str, str], remedy: str) -> OptionError:
    """Return the error for an option that its library does not take, without a secret value."""
    key = STORAGE_OPTION_PREFIX + name
    return OptionError(key, shown_value(key, options[name]), remedy)


def _key(place: str, options: Mapping[str, str]) -> _Key:
    return place, tuple(sorted(options.items())), os.getpid()


def _forget(key: _Key) -> None:
    _open.pop(key, None)
    _proven.discard(key)

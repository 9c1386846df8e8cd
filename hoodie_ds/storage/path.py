"""Paths below a storage's root. Invariant: a path that passes names a place inside the root."""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.errors import PathEscapeError

_DRIVE: Final = re.compile(r"[A-Za-z]:(/|$)")
_NO_NAMES: Final = frozenset({"", ".", ".."})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def check_path(path: str, *, root_allowed: bool = False) -> str:
    """Return a relative path unchanged if it stays inside the root on every file system.

    A `PathEscapeError` means that it is absolute, begins with a drive letter, holds a backslash, a
    NUL or half a surrogate pair, or has a component that is empty, ``.`` or ``..``.
    """
    if path == "" and root_allowed:
        return path
    reason = _reason(path)
    if reason is not None:
        raise PathEscapeError(f"path {path[:200]!r} is refused: {reason}; give one below the table")
    return path


def is_unfinished(name: str) -> bool:
    """Whether a file name is a storage's temporary name of an unfinished file."""
    return name.startswith(".") and name.endswith(".tmp")


def _reason(path: str) -> str | None:
    if "\0" in path or "\\" in path:
        return "it holds a NUL or a backslash"
    if path.startswith("/") or _DRIVE.match(path):
        return "it is absolute"
    if not _NO_NAMES.isdisjoint(path.split("/")):
        return "it has a component that is empty, '.' or '..'"
    if _SURROGATE.search(path):
        return "it is not Unicode text"
    return None

"""Power loss: what a disk may hold when the machine stops, as far as POSIX promises (F4).

What was synced is kept: the content of a file, the names in a folder. Of the rest a disk keeps any
part: any of the changes of names, and of a file's content any beginning. (The model of ALICE,
OSDI 2014.)
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final, TypeVar
from unittest.mock import patch

_T = TypeVar("_T")
_FOLDER: Final = 0
"""Number of a name that is a folder's; those of files' contents begin at 1."""

_TRIED: Final = 256
"""Of more combinations than this so many are tried, drawn from a seed."""

_PATCHED: Final = ("open", "fsync", "link", "replace", "unlink", "mkdir", "rmdir")
_REAL: Final = {name: getattr(os, name) for name in _PATCHED}


@dataclass(frozen=True, slots=True)
class _Change:
    """Names of one folder that change in one step: the number of each from then on."""

    folder: str
    names: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class _FileSync:
    number: int
    content: bytes


@dataclass(frozen=True, slots=True)
class _FolderSync:
    folder: str


@dataclass(frozen=True, slots=True)
class _Reached:
    moment: int


class Disk:
    """Records what this process does to a folder; a context manager.

    Seen are the calls of `os` (``open``, ``fsync``, ``link``, ``replace``, ``unlink``, ``mkdir``,
    ``rmdir``) of any thread, as `hoodie_ds.storage.local` makes them; a file made in another way
    is not. Everything that is in the folder at the beginning is durable.

    Parameters
    ----------
    root : str
        The folder.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._steps: list[_Change | _FileSync | _FolderSync | _Reached] = []
        self._names: dict[str, int] = {}
        self._contents: dict[int, bytes] = {}
        self._unsynced: dict[int, bytes] = {}
        self._patches = ExitStack()
        for path in Path(self._root).rglob("*"):
            self._names[str(path)] = _FOLDER if path.is_dir() else len(self._contents) + 1
            if path.is_file():
                self._contents[self._names[str(path)]] = path.read_bytes()
        self._start = dict(self._names)
        self._next = len(self._contents) + 1

    def __enter__(self) -> Disk:
        for name in _PATCHED:
            self._patches.enter_context(patch.object(os, name, getattr(self, f"_{name}")))
        return self

    def __exit__(self, *_: object) -> None:
        self._patches.close()
        for path, number in self._names.items():
            if number != _FOLDER:
                self._see(path, number)

    def reached(self, moment: int) -> None:
        """Note that what comes now may count on more, such as a commit that has returned."""
        self._steps.append(_Reached(moment))

    def states(self) -> Iterator[tuple[int, dict[str, bytes]]]:
        """Yield what the disk may hold when power is lost, after every step.

        Yields
        ------
        tuple of int and dict of str to bytes
            The moment that was `reached`, and the files by path relative to the root; no such pair
            twice.
        """
        durable: dict[str, int | None] = {**self._start}
        synced = dict(self._contents)
        pending: list[_Change] = []
        moment = 0
        seen: set[tuple[int, frozenset[tuple[str, bytes]]]] = set()
        for at, step in enumerate(self._steps):
            match step:
                case _Change():
                    pending.append(step)
                case _FileSync(number, content):
                    synced[number] = content
                case _FolderSync(folder):
                    for change in pending:
                        durable.update(change.names if change.folder == folder else ())
                    pending = [change for change in pending if change.folder != folder]
                case _Reached(moment):
                    pass
            for kept in _subsets(pending, at):
                names = {**durable, **dict(name for change in kept for name in change.names)}
                for files in self._contents_of(names, synced, at):
                    found = moment, frozenset(files.items())
                    if found not in seen:
                        seen.add(found)
                        yield moment, files

    def _contents_of(
        self, names: dict[str, int | None], synced: dict[int, bytes], seed: int
    ) -> Iterator[dict[str, bytes]]:
        """Give files the contents they may have: none, half or all of what was not synced."""
        files = {p: n for p, n in names.items() if n and self._is_reachable(names, p)}
        unsynced = sorted({number for number in files.values() if number not in synced})
        whole = [self._unsynced.get(number, b"") for number in unsynced]
        for cut in _product([(b"", body[: len(body) // 2], body) for body in whole], seed):
            contents = {**synced, **dict(zip(unsynced, cut, strict=True))}
            yield {os.path.relpath(p, self._root): contents[n] for p, n in files.items()}

    def _is_reachable(self, names: dict[str, int | None], path: str) -> bool:
        folder = os.path.dirname(path)
        while folder != self._root:
            if names.get(folder) != _FOLDER:
                return False
            folder = os.path.dirname(folder)
        return True

    def _changed(self, *changes: tuple[str, int | None]) -> None:
        """Take a change of names of one folder down, if it is within the root."""
        for path, number in changes:
            if number is None:
                self._names.pop(path, None)
            else:
                self._names[path] = number
        self._steps.append(_Change(os.path.dirname(changes[0][0]), changes))

    def _is_inside(self, path: str) -> bool:
        return str(path).startswith(self._root + os.sep)

    def _open(self, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor: int = _REAL["open"](path, flags, mode, dir_fd=dir_fd)
        if flags & os.O_CREAT and self._is_inside(path) and path not in self._names:
            self._changed((path, self._next))
            self._next += 1
        return descriptor

    def _fsync(self, descriptor: int) -> None:
        _REAL["fsync"](descriptor)
        inode = os.fstat(descriptor).st_ino
        for path, number in {self._root: _FOLDER, **self._names}.items():
            if os.stat(path).st_ino != inode:
                continue
            if number == _FOLDER:
                self._steps.append(_FolderSync(path))
            else:
                self._steps.append(_FileSync(number, self._see(path, number)))
            return

    def _see(self, path: str, number: int) -> bytes:
        """Read what a file holds by now: that, or some of it, may be there before it is synced."""
        self._unsynced[number] = Path(path).read_bytes()
        return self._unsynced[number]

    def _link(self, source: str, target: str) -> None:
        _REAL["link"](source, target)
        if self._is_inside(target):
            self._see(source, self._names[source])
            self._changed((target, self._names[source]))

    def _replace(self, source: str, target: str) -> None:
        _REAL["replace"](source, target)
        if self._is_inside(target):
            self._see(target, self._names[source])
            self._changed((target, self._names[source]), (source, None))

    def _unlink(self, path: str) -> None:
        _REAL["unlink"](path)
        if self._is_inside(path):
            self._changed((path, None))

    def _mkdir(self, path: str, mode: int = 0o777) -> None:
        _REAL["mkdir"](path, mode)
        if self._is_inside(path):
            self._changed((path, _FOLDER))

    def _rmdir(self, path: str) -> None:
        _REAL["rmdir"](path)
        if self._is_inside(path):
            self._changed((path, None))


def _subsets(changes: list[_Change], seed: int) -> Iterator[list[_Change]]:
    """Which of the changes have reached the disk."""
    for kept in _product([(False, True)] * len(changes), seed):
        yield [change for change, is_kept in zip(changes, kept, strict=True) if is_kept]


def _product(choices: list[tuple[_T, ...]], seed: int) -> Iterator[tuple[_T, ...]]:
    """Combine one of each; of very many combinations the first, the last and a sample."""
    if math.prod(map(len, choices)) <= _TRIED:
        yield from product(*choices)
        return
    drawn = random.Random(seed)
    yield tuple(each[0] for each in choices)
    yield tuple(each[-1] for each in choices)
    for _ in range(_TRIED):
        yield tuple(drawn.choice(each) for each in choices)

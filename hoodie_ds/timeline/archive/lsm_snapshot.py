"""Which files the archive of layout 2 has: ``manifest_<n>`` in ``.hoodie/timeline/history``.

The manifest of the greatest number lists the files that count. Others in the folder were merged
into them, or are of an archiver that was killed. A manifest is put if absent, under the number
after the one whose files it takes over, so one of several archivers wins and the others start
again. ``_version_`` names the newest manifest to readers that do not list (Hudi's `LSMTimeline`).
It is put last and may be behind: nothing leaves the active timeline before it is put.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.hints import COPY
from hoodie_ds.storage.decisive_put import put_decisively
from hoodie_ds.storage.protocol import Storage, names_in
from hoodie_ds.timeline.paths import V2

HISTORY: Final = f"{V2.folder}/history"
VERSION: Final = f"{HISTORY}/_version_"
_FILE: Final = re.compile(r"([0-9]{14,20})_([0-9]{14,20})_([0-9]+)\.parquet", re.ASCII)
_MANIFEST: Final = re.compile(r"manifest_([0-9]{1,9})", re.ASCII)
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file of the archive, as a manifest lists it.

    Its name has the bounds of the instant times in it, and the level; `size` is in bytes.
    """

    name: str
    size: int

    @classmethod
    def named(cls, low: str, high: str, level: int, size: int) -> ArchiveFile:
        """Return the file of instants between two times."""
        return cls(f"{low}_{high}_{level}.parquet", size)

    @property
    def path(self) -> str:
        """Its path."""
        return f"{HISTORY}/{self.name}"

    @property
    def level(self) -> int:
        """How often its rows were merged with those of others."""
        return int(self._part(3))

    @property
    def bounds(self) -> tuple[str, str]:
        """The times in its name, the first of which an upgrade from layout 1 may give last."""
        return self._part(1), self._part(2)

    def may_hold(self, time: str) -> bool:
        """Whether an instant of a time may be in it."""
        low, high = self.bounds
        return low <= time <= high or low > high  # of an upgrade, whose rows are in no order

    def may_hold_later(self, time: str) -> bool:
        """Whether an instant later than a time may be in it."""
        low, high = self.bounds
        return high > time or low > high

    def _part(self, number: int) -> str:
        match = _FILE.fullmatch(self.name)
        assert match is not None
        return match[number]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The archive as it was at one moment.

    `number` is that of the newest manifest, 0 if there is none, `files` those it lists, and `names`
    all names in the archive's folder.
    """

    number: int = 0
    files: tuple[ArchiveFile, ...] = ()
    names: frozenset[str] = frozenset()

    @property
    def manifests(self) -> list[int]:
        """Numbers of all manifests in the folder, the newest first."""
        return _manifests(self.names)

    @property
    def next_number(self) -> int:
        """The number after those of all manifests, of damaged ones too."""
        return max(self.manifests, default=0) + 1


def newest_snapshot(storage: Storage) -> Snapshot:
    """Return the archive as it is now; an empty one if there is none.

    A cut-off manifest is damaged only once ``_version_`` names it: before, it is one of Hudi's
    whose archiver was killed, and the one before it still counts. A file that it lists is lost if
    no newer manifest comes: archivers delete only files that no recent manifest lists.
    """
    lost: list[ArchiveFile] = []
    for _ in range(_TRIES):
        version = _version(storage)
        names = frozenset(names_in(storage, HISTORY))
        newest = max(_manifests(names), default=0)
        if newest < version:
            continue  # an archiver of Hudi puts it again
        with suppress(NotFoundError):  # archivers have put newer ones, and deleted it
            found = _whole(storage, names, version)
            lost = [file for file in found.files if file.name not in names]
            if not lost:
                return found
    if lost:
        raise CorruptFileError(
            f"{lost[0].path} is missing, which {manifest_path(found.number)} lists",
            COPY,
        )
    raise CorruptFileError(f"{manifest_path(version)} is missing, which {VERSION} names", COPY)


def unnamed_newest(storage: Storage) -> int:
    """Return the number of the newest manifest if ``_version_`` names none; 0 if all is well.

    An archiver that is killed leaves the first manifest so.
    """
    number = newest_snapshot(storage).number
    return number if number > 1 and not _version(storage) else 0


def read_manifest(storage: Storage, number: int) -> tuple[ArchiveFile, ...]:
    """Return the files that a manifest lists; `NotFoundError` if it is gone."""
    path = manifest_path(number)
    try:
        listed = json.loads(storage.read(path))["files"]
        files = tuple(ArchiveFile(str(f["fileName"]), int(f["fileLen"])) for f in listed)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise _no_list(path, repr(error)[:200]) from error
    for file in files:
        if _FILE.fullmatch(file.name) is None:
            raise _no_list(path, f"{file.name[:100]!r} is no file of the archive")
    return files


def put_manifest(storage: Storage, before: Snapshot, files: Iterable[ArchiveFile]) -> bool:
    """Put the manifest with all files that count from now on after those of a snapshot.

    False if another archiver was faster. If this one was stopped for long, True proves too little,
    since the name may be free after many others: the newest snapshot decides. Raises
    `CommitOutcomeUnknownError` if the outcome could not be found out.
    """
    path = manifest_path(before.next_number)
    return put_decisively(storage, path, _manifest(files).encode())


def point_to_newest(storage: Storage) -> None:
    """Let ``_version_`` name the newest manifest."""
    # A process stopped before the put may name an old one: it checks again afterwards.
    while _version(storage) < (number := newest_snapshot(storage).number):
        storage.replace(VERSION, str(number).encode())


def manifest_path(number: int) -> str:
    """Path of a manifest."""
    return f"{HISTORY}/manifest_{number}"


def is_archive_file(name: str) -> bool:
    """Whether a name is that of a file that manifests list."""
    return _FILE.fullmatch(name) is not None


def _whole(storage: Storage, names: frozenset[str], version: int) -> Snapshot:
    """The newest snapshot, or the one before it if the manifest does not count yet."""
    numbers = [*_manifests(names)[:2], 0]
    if not numbers[0]:
        return Snapshot(names=names)
    try:
        return Snapshot(numbers[0], read_manifest(storage, numbers[0]), names)
    except CorruptFileError:
        if numbers[0] <= version:
            raise
    before = numbers[1]
    return Snapshot(before, read_manifest(storage, before) if before else (), names)


def _manifests(names: Iterable[str]) -> list[int]:
    found = (_MANIFEST.fullmatch(name) for name in names)
    return sorted((int(match[1]) for match in found if match), reverse=True)


def _manifest(files: Iterable[ArchiveFile]) -> str:
    """The JSON of a manifest, spaced as Hudi spaces it."""
    entries = [
        f'{{\n    "fileName" : {json.dumps(file.name)},\n    "fileLen" : {file.size}\n  }}'
        for file in files
    ]
    return f'{{\n  "files" : [ {", ".join(entries)} ]\n}}'


def _version(storage: Storage) -> int:
    """The number that ``_version_`` says; as in Hudi 0 if it is missing or cut off."""
    try:
        found = storage.read(VERSION).strip()
    except NotFoundError:
        return 0
    return int(found) if found.isdigit() and len(found) < 10 else 0


def _no_list(path: str, what: str) -> CorruptFileError:
    return CorruptFileError(
        f"{path} does not list the files of the archived timeline ({what})",
        COPY,
    )

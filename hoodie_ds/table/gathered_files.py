"""Files of the newest file slices, gathered from commits.

What a process has gathered grows with each commit, and can be stored for others.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.file_slice import BaseFile, FileGroupId
from hoodie_ds.table.slicing import SLICINGS
from hoodie_ds.timeline.file_changes import FileChanges, file_changes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import LAYOUTS
from hoodie_ds.timeline.settled_instants import Settled
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file of a newest slice, as commits name it.

    `start` is the time by which it is told from older slices, see
    `hoodie_ds.table.slicing.Slicing.start`; `instant` is the newest commit that wrote to it.
    """

    path: str
    group: FileGroupId
    start: str
    instant: Instant

    def is_before(self, base: BaseFileName) -> bool:
        """Whether it is of an older slice than that of a committed base file of its group.

        Commits do not show it if that one's is archived, and a savepoint keeps an older one.
        """
        return self.start < padded(base.instant_time)


def of_slice(named: Iterable[NamedFile], base: BaseFile | None) -> set[str]:
    """Return the paths of a group's named files that are of its slice on a base file, or later."""
    return {file.path for file in named if base is None or not file.is_before(base.name)}


@dataclass(slots=True)
class _Group:
    """Files of one file group: start of their slice and the newest commit of each, by path."""

    files: dict[str, tuple[str, Instant]] = field(default_factory=dict)
    newest_base: str = ""

    def add(self, path: str, start: str, instant: Instant, is_base: bool) -> None:
        """Add a file, and remove those of older slices."""
        if start >= self.newest_base:
            known = self.files.get(path)
            if known is None or padded(known[1].time) < padded(instant.time):
                self.files[path] = start, instant
        if is_base and start > self.newest_base:
            self.newest_base = start
            self.files = {p: found for p, found in self.files.items() if found[0] >= start}


class LiveFiles:
    """The files of the newest slices, from the commits of `seen`, which are added in any order."""

    def __init__(self, seen: Timeline) -> None:
        self.seen = seen
        self._partitions: dict[str, dict[str, _Group]] = {}
        self._replaced: dict[FileGroupId, set[Instant]] = {}

    @classmethod
    def of_newest(cls, storage: Storage, timeline: Timeline, count: int) -> LiveFiles:
        """Return the files of the newest `count` commits, and of all that replace file groups.

        Files that only older commits name are unknown.
        """
        *_, oldest = islice(timeline.commits_backwards(), count)
        start = padded(oldest.time)
        recent = tuple(i for i in timeline.recent if padded(i.time) < start)
        settled = timeline.settled.before(start)
        live = cls(Timeline(recent, settled=settled, layout=timeline.layout))
        for instant in live.seen.replace_commits:
            live._hide(instant, file_changes(storage, instant))
        live.grow(storage, timeline)
        return live

    def grow(self, storage: Storage, timeline: Timeline) -> bool:
        """Add the commits that a timeline has more than what was seen.

        False if commits that were added are not on the timeline any more, so that nothing here can
        be used for it.
        """
        if timeline is self.seen:
            return True
        start = timeline.first_time
        gone = list(self.seen.commits_beyond(timeline))
        if any(padded(i.time) >= start for i in gone):
            return False
        if gone:
            self._let_go(start)
        for instant in timeline.commits_beyond(self.seen):
            self.add(instant, file_changes(storage, instant))
        self.seen = timeline
        return True

    def add(self, instant: Instant, commit: FileChanges) -> list[str]:
        """Add a commit, whatever was seen; returns its files that are not of older slices."""
        rule = SLICINGS[instant.layout]
        newest: list[str] = []
        self._hide(instant, commit)
        for stat in commit.added.values():
            name = stat.path.rpartition("/")[2]
            base, log = BaseFileName.parse(name), LogFileName.parse(name)
            file = base or log
            if file is None:  # Hudi writes no path where it wrote nothing
                continue
            groups = self._partitions.setdefault(stat.partition_path, {})
            group = groups.setdefault(file.file_id, _Group())
            start = rule.start(log, instant) if log else padded(instant.time)
            group.add(stat.path, start, instant, base is not None)
            if stat.path in group.files:
                newest.append(stat.path)
        return newest

    def _hide(self, instant: Instant, commit: FileChanges) -> None:
        for partition, ids in commit.replaced.items():
            for file_id in ids:
                self._replaced.setdefault(FileGroupId(partition, file_id), set()).add(instant)

    def _let_go(self, start: str) -> None:
        """Forget what only commits before a time say: they are archived."""
        replaced = {
            group: {instant for instant in instants if padded(instant.time) >= start}
            for group, instants in self._replaced.items()
        }
        self._replaced = {group: instants for group, instants in replaced.items() if instants}
        kept = (
            (group, found)
            for group, found in self._groups()
            if any(padded(instant.time) >= start for _, instant in found.files.values())
        )
        partitions: dict[str, dict[str, _Group]] = {}
        for group, found in kept:
            partitions.setdefault(group.partition_path, {})[group.file_id] = found
        self._partitions = partitions

    def _groups(
        self, among: FileGroupId | str | None = None
    ) -> Iterator[tuple[FileGroupId, _Group]]:
        """Yield a file group, those of a partition, or all."""
        if isinstance(among, FileGroupId):
            found = self._partitions.get(among.partition_path, {}).get(among.file_id)
            yield from [] if found is None else [(among, found)]
            return
        for path in self._partitions if among is None else (among,):
            for file_id, found in self._partitions.get(path, {}).items():
                yield FileGroupId(path, file_id), found

    def newest_naming(self, group: FileGroupId, path: str, start: str) -> Instant | None:
        """Return the newest commit that wrote to a file of a group's newest slice.

        Raises `LookupError` if the file is of an older slice, which is forgotten.
        """
        found = self._partitions.get(group.partition_path, {}).get(group.file_id, _Group())
        if padded(start) < found.newest_base:
            raise LookupError(path)
        known = found.files.get(path)
        return None if known is None else known[1]

    def named(
        self, timeline: Timeline, among: FileGroupId | str | None = None
    ) -> Iterator[NamedFile]:
        """Yield the files that commits of a timeline name: of a file group, a partition, or all.

        Commits that were archived since they were added do not count: others that were archived
        with them decide whether their files still count. Where commits after the first one of the
        timeline are archived, a file may be of an older slice: see `NamedFile.is_before`.
        """
        for group, named in self._groups(among):
            if group in self._replaced:
                continue
            for path, (start, instant) in named.files.items():
                if padded(instant.time) >= timeline.first_time:
                    yield NamedFile(path, group, start, instant)

    def groups(self, timeline: Timeline, partition_path: str | None = None) -> set[FileGroupId]:
        """Return the file groups of those files."""
        return {file.group for file in self.named(timeline, partition_path)}

    def all_named(self, timeline: Timeline) -> Iterator[tuple[str, Instant]]:
        """Yield the files that any added commit names, archived or not, with the commit.

        Replaced file groups are left out. A file id that an archived replace commit has freed may
        be back: new file groups of a bucket are numbered.
        """
        hidden = set(self.replaced(timeline))
        for group, named in self._groups():
            end = max((padded(i.ended) for i in self._replaced.get(group, ())), default="")
            for path, (start, instant) in named.files.items():
                if start > end and group not in hidden:
                    yield path, instant

    def replaced(self, timeline: Timeline) -> Iterator[FileGroupId]:
        """Yield the file groups that replace commits of a timeline have hidden."""
        for group, instants in self._replaced.items():
            if any(timeline.commit_at(instant.time) == instant for instant in instants):
                yield group

    def to_json(self) -> dict[str, object]:
        """Return what `from_json` takes."""
        return {
            "settled": b64encode(self.seen.settled.packed).decode(),
            "recent": [LAYOUTS[i.layout].file_name(i) for i in self.seen.recent],
            "groups": [
                [
                    *(g.partition_path, g.file_id, found.newest_base),
                    [
                        (p, start, _times(i), i.action.value)
                        for p, (start, i) in found.files.items()
                    ],
                ]
                for g, found in self._groups()
            ],
            "replaced": [
                [g.partition_path, g.file_id, [_times(i) for i in sorted(instants)]]
                for g, instants in self._replaced.items()
            ],
        }

    @classmethod
    def from_json(cls, layout: int, content: Mapping[str, Any]) -> LiveFiles:
        """Return the summary of a timeline of a layout."""
        recent = tuple(filter(None, map(LAYOUTS[layout].parse, content["recent"])))
        settled = Settled.unpacked(b64decode(content["settled"]), 0, layout)
        live = cls(Timeline(recent, settled=settled, layout=layout))
        for partition, file_id, newest_base, files in content["groups"]:
            found = {
                path: (start, _instant(times, Action(action), layout))
                for path, start, times, action in files
            }
            live._partitions.setdefault(partition, {})[file_id] = _Group(found, newest_base)
        for partition, file_id, every in content["replaced"]:
            live._replaced[FileGroupId(partition, file_id)] = {
                _instant(times, Action.REPLACE_COMMIT, layout) for times in every
            }
        return live


def _times(instant: Instant) -> str:
    """An instant's time, with its completion time if it has one, as in summaries."""
    return "_".join(filter(None, (instant.time, instant.completion_time)))


def _instant(times: str, action: Action, layout: int) -> Instant:
    time, _, end = times.partition("_")
    return Instant(time, action, State.COMPLETED, 0, layout, end)

"""Which instants are archived: the oldest ones that nothing needs on the active timeline.

The rules are those of Hudi's ``TimelineArchiverV1`` and ``TimelineArchiverV2``. A time before the
active timeline counts as committed, so an instant that is not settled stays there, with all later
ones. In layout 2 all other actions are archived with the commits after them; too many rollbacks
alone, of writes that failed one after another, are archived in both layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from hoodie_ds.config.archiving_options import ArchivingOptions
from hoodie_ds.services.clean_planner import last_clean
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.timeline.bodies.commit_metadata import PENDING_KEY
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import V1
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import newest_decision
from hoodie_ds.transaction.guard_commits import guard_commits

_TAKEN_ALONG: Final = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.INDEXING)


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The completed instants to archive, by time, with all their files."""

    instants: tuple[Instant, ...] = ()


def is_archiving_due(timeline: Timeline, options: ArchivingOptions) -> bool:
    """Whether there are too many instants of a kind, without reading the storage."""
    return any(len(found) > options.max_commits for found in _countable(timeline))


def plan_archive(
    storage: Storage, timeline: Timeline, options: ArchivingOptions, end: str = ""
) -> ArchivePlan:
    """Choose the instants to archive, before `end` if that is given.

    The timeline must show all decisions.
    """
    if not is_archiving_due(timeline, options):
        return ArchivePlan()
    commits, *others = (_oldest(found, options) for found in _countable(timeline))
    commits = tuple(i for i in commits if not end or padded(i.time) < end)
    chosen = _commits(storage, timeline, options, commits) if commits else []
    others.append(_before(timeline, chosen))
    ends = [end, *(padded(instant.time) for instant in timeline.pending[:1])]
    first = min(filter(None, ends), default="")
    for found in others:
        chosen += [i for i in found if not first or padded(i.time) < first]
    return ArchivePlan(tuple(sorted(set(chosen), key=lambda instant: padded(instant.time))))


def _countable(timeline: Timeline) -> list[tuple[Instant, ...]]:
    """Commits first, then the other kinds, each of which is counted separately."""
    kinds = [Action.CLEAN, Action.ROLLBACK] if timeline.layout == V1.version else [Action.ROLLBACK]
    return [tuple(timeline.commits), *(_completed(timeline, kind) for kind in kinds)]


def _completed(timeline: Timeline, kind: Action) -> tuple[Instant, ...]:
    return tuple(i for i in timeline.completed if i.action is kind)


def _oldest(found: tuple[Instant, ...], options: ArchivingOptions) -> tuple[Instant, ...]:
    """The instants beyond the limit."""
    too_many = len(found) > options.max_commits
    return found[: len(found) - options.min_commits] if too_many else ()


def _before(timeline: Timeline, commits: Sequence[Instant]) -> tuple[Instant, ...]:
    """What is not a commit, and before the newest archived one, which takes it along in layout 2.

    Nothing may stay: Hudi takes what is not on the active timeline and later than its first instant
    for pending, and leaves the log files of such a commit out of its compactions.
    """
    if timeline.layout == V1.version or not commits:
        return ()
    end = padded(commits[-1].time)
    return tuple(i for i in timeline.completed if i.action in _TAKEN_ALONG and padded(i.time) < end)


def _commits(
    storage: Storage, timeline: Timeline, options: ArchivingOptions, candidates: tuple[Instant, ...]
) -> list[Instant]:
    """The commits among the candidates that nothing keeps."""
    ends = [padded(time) for time in _kept_times(storage, timeline)]
    savepoints = {savepoint.time for savepoint in timeline.savepoints}
    if savepoints and not options.beyond_savepoint:
        ends.append(padded(timeline.savepoints[0].time))
    elif savepoints:  # commits with savepoints stay, and as many others as without them
        others = (i for i in timeline.commits if i.time not in savepoints)
        candidates = tuple(i for i, _ in zip(others, candidates, strict=False))
    end = min(ends, default="")
    before = takewhile(lambda instant: not end or padded(instant.time) < end, candidates)
    return list(takewhile(lambda instant: not _hides(storage, timeline, instant), before))


def _kept_times(storage: Storage, timeline: Timeline) -> Iterator[str]:
    """Times of instants that stay, and with them all later ones."""
    if timeline.pending:
        first = timeline.pending[0].time
        # As in Hudi the commit before it stays too: the instant is based on that commit.
        older = (i for i in timeline.commits_backwards() if padded(i.time) < padded(first))
        yield next((i.time for i in older), first)
    newest = newest_decision(storage)
    if newest is not None:
        if newest.instant.action is not Action.SAVEPOINT:  # its time is that of an old commit
            yield newest.instant.time
        found = guard_commits(storage, timeline)
        if any(PENDING_KEY in commit.extra for _, commit in found):
            yield from (instant.time for instant, _ in found)


def hidden_files(storage: Storage, instant: Instant) -> Iterator[str]:
    """Yield the paths of files that still exist in file groups which a completed commit replaced.

    Readers would see them again if the commit were archived.
    """
    for partition, ids in file_changes(storage, instant).replaced.items():
        for status in storage.list(partition):
            name = status.path.rpartition("/")[2]
            found = BaseFileName.parse(name) or LogFileName.parse(name)
            if found is not None and found.file_id in ids:
                yield status.path


def _hides(storage: Storage, timeline: Timeline, instant: Instant) -> bool:
    """Whether file groups that a commit replaced would be visible again without it.

    As in Hudi a clean must have passed the commit; in addition, their files must be gone.
    """
    if instant.action is not Action.REPLACE_COMMIT:
        return False
    replaced = file_changes(storage, instant).replaced
    if not any(replaced.values()):
        return False
    cleaned = _cleaned_up_to(storage, timeline)
    if not cleaned or padded(instant.time) >= padded(cleaned):
        return True
    return any(hidden_files(storage, instant))


def _cleaned_up_to(storage: Storage, timeline: Timeline) -> str:
    """Time before which the last clean left no replaced file groups; empty without a clean.

    A clean by versions deletes all that were replaced before it.
    """
    last = last_clean(storage, timeline)
    cleans = [i.time for i in timeline.completed if i.action is Action.CLEAN]
    if last is None or not cleans:
        return ""
    return last.earliest or cleans[-1]

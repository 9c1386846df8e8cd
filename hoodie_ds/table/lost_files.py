"""What to do about a data file of a commit that is missing or damaged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.hints import compacted_again, missing, restored
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation, CompactionPlan
from hoodie_ds.timeline.commands import changing
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import commit_path, instant_path
from hoodie_ds.timeline.timeline import Timeline


def remedy_of(
    storage: Storage,
    timeline: Timeline,
    commit: Instant | None,
    path: str,
    found: Iterable[str] | None = None,
) -> str:
    """Return the remedy for a lost file, by the active commit that named it last, if known.

    `found` are the listed paths, at least of its partition; None if a file of it exists.
    """
    change = partial(changing, storage)
    before = None if commit is None else timeline.time_before(commit.time)
    if commit is not None and before is not None and _may_run_again(storage, commit):
        return compacted_again(commit_path(commit), change("compact"))
    remedy = restored(change, before)
    return remedy if found is None else missing(change, path, found, remedy)


def _may_run_again(storage: Storage, commit: Instant) -> bool:
    """Whether a commit is a compaction whose files can be written again from what it merged."""
    begun = replace(commit.at(State.REQUESTED), action=Action.COMPACTION)
    path = instant_path(begun)
    try:
        plan = CompactionPlan.from_bytes(storage.read(path), path)
    except (NotFoundError, CorruptFileError):
        return False
    for one in plan.operations:
        listed = storage.list(one.partition_path)
        names = {status.path.rpartition("/")[2] for status in listed}
        merged = {*one.log_files, *([one.base_file] if one.base_file else [])}
        if not merged <= names or any(_is_newer(name, one, commit) for name in names):
            return False
    return True


def _is_newer(name: str, one: CompactionOperation, commit: Instant) -> bool:
    """Whether a base file of the compacted file group was written after the compaction."""
    base = BaseFileName.parse(name)
    if base is None or base.file_id != one.file_id:
        return False
    return padded(base.instant_time) > padded(commit.time)

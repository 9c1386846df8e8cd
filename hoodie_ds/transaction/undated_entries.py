"""Replay guard entries of writers that earlier releases stored without a commit's time.

Such an entry counts whatever is rolled back. So the process that rolls back its batch gives it the
time of a commit that is rolled back too, which voids it. Those releases kept one file for each
writer, so the writer's entry is then read from older commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress

from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.commit_metadata import CHECKPOINT_KEY, INPUTS_KEY, CommitMetadata
from hoodie_ds.timeline.paths import put_aside_path
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.guard_commits import GuardCommit, commits_naming


def date_entries(
    storage: Storage,
    timeline: Timeline,
    time: str,
    lost: Iterable[GuardCommit],
    kept: Iterable[CommitMetadata],
) -> None:
    """Void the undated entries of batches that are about to be rolled back."""
    staying = {(q, n) for commit in kept for q, numbers in commit.batches.items() for n in numbers}
    going = {
        (query, max(numbers)): instant.time
        for instant, commit in lost
        for query, numbers in commit.batches.items()
        if numbers and (query, max(numbers)) not in staying
    }
    dated: set[str] = set()
    for (query, number), gone in going.items():
        undated = put_aside_path(query, number)
        with suppress(NotFoundError):
            _put(storage, put_aside_path(query, number, gone), storage.read(undated))
            dated.add(query)
    unnamed = dated - {query for query, _ in staying}
    older = commits_naming(storage, timeline, time, unnamed) if time else {}
    for query, (instant, commit) in older.items():
        number = max(commit.batches[query])
        digests = json.loads(commit.guard_entries[INPUTS_KEY])[query]
        said = {
            CHECKPOINT_KEY: json.dumps({query: str(number)}),
            INPUTS_KEY: json.dumps({query: digests}),
        }
        _put(storage, put_aside_path(query, number, instant.time), json.dumps(said).encode())
    # Only after the entries that replace them are put.
    storage.delete_many([put_aside_path(query, number) for query, number in going])


def _put(storage: Storage, path: str, body: bytes) -> None:
    with suppress(AlreadyExistsError):
        storage.put_if_absent(path, body)

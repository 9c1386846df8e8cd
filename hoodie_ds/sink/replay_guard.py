"""The replay guard: which micro-batches the table already holds.

Every commit of ours carries, for each of the latest writers, the highest batch that it committed,
under the key and in the form of Hudi's own streaming sink. What a commit would say of older writers
is stored before it, in a file for each (`hoodie_ds.sink.replay.past_writers`). So the newest commit
and those files know every batch, however old; except for later commits of other engines, which name
only their own query, and for commits that were pending and completed later.

Next to the numbers are the digests of the rows of each query's newest batches. So archiving loses
nothing as long as one commit of ours is on the timeline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.commit_metadata import CHECKPOINT_KEY, INPUTS_KEY
from hoodie_ds.timeline.paths import commit_path
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import newest_decision
from hoodie_ds.transaction.guard_commits import (
    covers_all,
    entries_carried,
    guard_commits,
    guard_commits_until,
)

BATCH_KEY: Final = "_hoodie_ds_batch"
"""Key in a commit's extra metadata: JSON object of the micro-batch's query and number."""

_DIGESTS_KEPT: Final = 10
"""Newest batches of a query whose digests are kept: an engine repeats the last one, and an old copy
of a checkpoint is detected before it reaches new batches."""

_NUMBER: Final = re.compile(r"[0-9]{1,19}")


def _number(batch: str) -> int:
    """The number of a batch in a commit; -1 if it is not a number."""
    return int(batch) if _NUMBER.fullmatch(batch) else -1


def _united(
    one: Mapping[int, InputDigest], other: Mapping[int, InputDigest]
) -> Mapping[int, InputDigest]:
    """The digests of two commits; the newer alone if those of batches between are in neither."""
    older, newer = sorted((one, other), key=lambda known: max(known, default=-1))
    is_whole = not older or not newer or max(older) >= min(newer)
    return {**one, **other} if is_whole else newer


@dataclass(frozen=True, slots=True, order=True)
class BatchId:
    """Identity of a micro-batch: a streaming query and the number of the batch in it.

    The query is the writer of a numbered batch write. `formerly` is the name under which earlier
    releases stored the query; it counts until the query has a commit under its own.
    """

    query_id: str
    batch_id: int
    formerly: str = ""

    def to_json(self) -> str:
        """Return the identity as stored in a commit."""
        return json.dumps({"query": self.query_id, "batch": self.batch_id}, sort_keys=True)

    def __str__(self) -> str:
        return f"batch {self.batch_id} of query {self.query_id}"


@dataclass(frozen=True, slots=True)
class ReplayGuard:
    """Highest committed batch of each writer, and digests of the newest ones."""

    committed: Mapping[str, str] = field(default_factory=dict)
    """Writer to batch number, the writer of the newest batch last; other engines' writers too.

    A query that is known and has no commit has no number."""
    inputs: Mapping[str, Mapping[int, InputDigest]] = field(default_factory=dict)
    """Digests of the newest batches of ours, by query and number."""

    @classmethod
    def load(cls, storage: Storage, timeline: Timeline) -> ReplayGuard:
        """Read the guard from the newest commits, back to one of ours.

        If other engines have archived all of ours, the newest decision carries it.
        """
        found = guard_commits(storage, timeline)
        guards = [cls.parse(c.guard_entries, commit_path(i)) for i, c in found]
        if not covers_all(timeline, found) and (newest := newest_decision(storage)) is not None:
            carried = entries_carried(storage, timeline, newest.carried)
            guards += [cls.parse(entries, newest.path) for entries in carried]
        return reduce(cls.merged, guards, cls())

    @classmethod
    def load_until(cls, storage: Storage, timeline: Timeline, time: str) -> ReplayGuard:
        """Read the guard without the commits after an instant time."""
        found = guard_commits_until(storage, timeline, time)
        guards = (cls.parse(c.guard_entries, commit_path(i)) for i, c in found)
        return reduce(cls.merged, guards, cls())

    def merged(self, other: ReplayGuard) -> ReplayGuard:
        """Take the later batch of each query; this guard's if an entry is not a number."""
        later = {
            query: batch
            for query, batch in other.committed.items()
            if query not in self.committed or _number(batch) > _number(self.committed[query])
        }
        inputs = {**other.inputs, **self.inputs}
        for query in other.inputs.keys() & self.inputs.keys():
            inputs[query] = _united(other.inputs[query], self.inputs[query])
        older = {query: later[query] for query in later if query not in self.committed}
        return ReplayGuard({**older, **self.committed, **later}, inputs)

    @classmethod
    def parse(cls, extra: Mapping[str, str], path: str) -> ReplayGuard:
        """Read the entries of a commit's extra metadata; `path` is the commit's, for errors."""
        text = extra.get(CHECKPOINT_KEY, "{}")
        try:
            entries = json.loads(text)
            committed = {str(key): str(value) for key, value in entries.items()}
        except (ValueError, AttributeError, RecursionError) as error:
            raise CorruptFileError(
                f"{path}: {CHECKPOINT_KEY} = {text[:100]!r} is not a JSON object of batch ids"
            ) from error
        text = extra.get(INPUTS_KEY, "{}")
        try:
            inputs = {
                query: {int(number): InputDigest.parse(text) for number, text in digests.items()}
                for query, digests in json.loads(text).items()
            }
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFileError(
                f"{path}: {INPUTS_KEY} = {text[:100]!r} is not a JSON object of digests by batch"
            ) from error
        return cls(committed, inputs)

    def name_of(self, batch: BatchId) -> str | None:
        """Return the name under which a batch's query is known here; None if it is not."""
        return next(
            (n for n in (batch.query_id, batch.formerly or batch.query_id) if n in self.committed),
            None,
        )

    def highest(self, batch: BatchId) -> int:
        """Return the highest committed number of a batch's query; -1 if there is none."""
        return _number(self.committed.get(self.name_of(batch) or "", ""))

    def digests(self, batch: BatchId) -> Mapping[int, InputDigest]:
        """Return the digests of the newest batches of a batch's query, by number."""
        return self.inputs.get(self.name_of(batch) or "", {})

    def holds(self, batch: BatchId) -> bool:
        """Whether a batch, or a later one of its query, is in the table."""
        return batch.batch_id <= self.highest(batch)

    def leaves_out(self, batch: BatchId) -> bool:
        """Whether no rows were committed under a batch's number, which lies between known ones.

        Such a batch had no rows, which makes no commit, or never came.
        """
        known = self.digests(batch)
        return batch.batch_id not in known and (
            min(known, default=0) < batch.batch_id < max(known, default=0)
        )

    def with_batch(self, batch: BatchId, digest: InputDigest) -> ReplayGuard:
        """Return the guard after a batch."""
        query, names = batch.query_id, (batch.query_id, self.name_of(batch))
        before = self.digests(batch)
        if self.highest(batch) not in before:  # other engines have written batches since
            before = {}
        known = {**before, batch.batch_id: digest.as_kept()}
        newest = {number: known[number] for number in sorted(known)[-_DIGESTS_KEPT:]}
        committed = {name: text for name, text in self.committed.items() if name not in names}
        inputs = {name: kept for name, kept in self.inputs.items() if name not in names}
        return ReplayGuard({**committed, query: str(batch.batch_id)}, {**inputs, query: newest})

    def parted(self, carried: int) -> tuple[ReplayGuard, list[ReplayGuard]]:
        """Return the guard with `carried` writers of ours, and guards of the writers left out."""
        numbered = (name for name, text in self.committed.items() if _number(text) >= 0)
        ours = [name for name in numbered if name in self.inputs]
        left = ours[:-carried]
        parts = [ReplayGuard({n: self.committed[n]}, {n: self.inputs[n]}) for n in left]
        committed = {name: text for name, text in self.committed.items() if name not in left}
        inputs = {name: kept for name, kept in self.inputs.items() if name in committed}
        return ReplayGuard(committed, inputs), parts

    def entries(self) -> dict[str, str]:
        """Return the entries for a commit's extra metadata."""
        inputs = {
            query: {str(number): digest.to_text() for number, digest in digests.items()}
            for query, digests in self.inputs.items()
        }
        entries = {CHECKPOINT_KEY: json.dumps(dict(self.committed))}
        return {**entries, INPUTS_KEY: json.dumps(inputs)} if inputs else entries

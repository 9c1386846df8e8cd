"""The replay guard: which micro-batches the table already holds.

Every commit of ours carries, for every streaming query that ever wrote to the table, the highest
batch that it committed, under the key and in the form of Hudi's own streaming sink. So the newest
tells all, however old a batch is; but for other engines' commits since then, which name their own
query alone, and for commits that were pending beside it and completed later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import commit_path
from hoodie_ds.timeline.timeline import Timeline, read_commit

CHECKPOINT_KEY: Final = "_hudi_streaming_sink_checkpoint"
"""Key in a commit's extra metadata: JSON object of writer identifier to batch id, as text."""


PENDING_KEY: Final = "_hoodie_ds_pending"
"""Key in the extra metadata of our commits: times of the instants that were pending beside it."""

BATCH_KEY: Final = "_hoodie_ds_batch"
"""Key in a commit's extra metadata: JSON object of the micro-batch's query and number."""


_NUMBER: Final = re.compile(r"[0-9]{1,19}")


def _number(batch: str) -> int:
    """The number of a batch as a commit carries it; -1 for what is none."""
    return int(batch) if _NUMBER.fullmatch(batch) else -1


@dataclass(frozen=True, slots=True, order=True)
class BatchId:
    """Identity of a micro-batch: a streaming query and the number of the batch in it."""

    query_id: str
    batch_id: int

    def to_json(self) -> str:
        """Return the identity as a commit carries it."""
        return json.dumps({"query": self.query_id, "batch": self.batch_id}, sort_keys=True)

    def __str__(self) -> str:
        return f"batch {self.batch_id} of query {self.query_id}"


@dataclass(frozen=True, slots=True)
class ReplayGuard:
    """Highest committed batch of each writer.

    Parameters
    ----------
    committed : mapping of str to str
        Writer identifier to batch id, as stored; other engines' identifiers are carried along.
    """

    committed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, storage: Storage, timeline: Timeline) -> ReplayGuard:
        """Read the guard from the newest commits, back to one of ours.

        Raises
        ------
        CorruptFileError
            The commit's entry is not what a streaming sink writes.
        """
        guard = cls()
        waiting = list(timeline.commits)
        seen: set[Instant] = set()
        while waiting:
            instant = waiting.pop()
            if instant in seen:
                continue
            seen.add(instant)
            extra = read_commit(storage, instant).extra
            guard = guard._merged(cls.parse(extra.get(CHECKPOINT_KEY, "{}"), commit_path(instant)))
            if PENDING_KEY in extra:
                times = extra[PENDING_KEY].split()
                waiting = [found for time in times if (found := timeline.commit_at(time))]
        return guard

    def _merged(self, other: ReplayGuard) -> ReplayGuard:
        """Take the later batch of each query; this guard's where an entry is no number."""
        later = {
            query: batch
            for query, batch in other.committed.items()
            if query not in self.committed or _number(batch) > _number(self.committed[query])
        }
        return ReplayGuard({**self.committed, **later})

    @classmethod
    def parse(cls, text: str, path: str) -> ReplayGuard:
        """Read the entry of a commit's extra metadata; `path` is the commit's, for errors."""
        try:
            entries = json.loads(text)
            return cls({str(key): str(value) for key, value in entries.items()})
        except (ValueError, AttributeError, RecursionError) as error:
            raise CorruptFileError(
                f"{path}: {CHECKPOINT_KEY} = {text[:100]!r} is no JSON object of batch ids"
            ) from error

    def holds(self, batch: BatchId) -> bool:
        """Whether a batch is in the table."""
        return batch.batch_id <= _number(self.committed.get(batch.query_id, ""))

    def with_batch(self, batch: BatchId) -> ReplayGuard:
        """Return the guard after a batch."""
        return ReplayGuard({**self.committed, batch.query_id: str(batch.batch_id)})

    def to_json(self) -> str:
        """Return the entry for a commit's extra metadata."""
        return json.dumps(dict(self.committed), sort_keys=True)

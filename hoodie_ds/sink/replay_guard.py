"""The replay guard: which micro-batches the table already holds.

Every commit carries, for every streaming query that ever wrote to the table, the highest batch
that it committed, under the key and in the form of Hudi's own streaming sink. So the newest
commit that has the key tells all, however old a batch is and whoever committed in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.timeline import Timeline, read_commit

CHECKPOINT_KEY: Final = "_hudi_streaming_sink_checkpoint"
"""Key in a commit's extra metadata: JSON object of writer identifier to batch id, as text."""


BATCH_KEY: Final = "_hoodie_ds_batch"
"""Key in a commit's extra metadata: JSON object of the micro-batch's query and number."""


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
        """Read the guard from the newest commit that carries one.

        Raises
        ------
        CorruptFileError
            The commit's entry is not what a streaming sink writes.
        """
        for instant in reversed(timeline.commits):
            text = read_commit(storage, instant).extra.get(CHECKPOINT_KEY)
            if text is not None:
                return cls._parse(text, instant_path(instant))
        return cls()

    @classmethod
    def _parse(cls, text: str, path: str) -> ReplayGuard:
        try:
            entries = json.loads(text)
            return cls({str(key): str(value) for key, value in entries.items()})
        except (ValueError, AttributeError) as error:
            raise CorruptFileError(
                f"{path}: {CHECKPOINT_KEY} = {text[:100]!r} is no JSON object of batch ids"
            ) from error

    def holds(self, batch: BatchId) -> bool:
        """Whether a batch is in the table."""
        highest = self.committed.get(batch.query_id)
        return highest is not None and highest.isdigit() and batch.batch_id <= int(highest)

    def with_batch(self, batch: BatchId) -> ReplayGuard:
        """Return the guard after a batch."""
        return ReplayGuard({**self.committed, batch.query_id: str(batch.batch_id)})

    def to_json(self) -> str:
        """Return the entry for a commit's extra metadata."""
        return json.dumps(dict(self.committed), sort_keys=True)

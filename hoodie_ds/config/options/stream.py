"""The options of a write that concern its batches: how they are known and committed."""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.option import BOOLEAN, POSITIVE_INT, TEXT, Kind, Option

_INT64_MAX: Final = 2**63 - 1


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,19}", text) and int(text) <= _INT64_MAX else None


BATCHES_PER_COMMIT: Final = Option(
    "hoodie.streaming.batches.per.commit",
    POSITIVE_INT,
    "Micro-batches of a stream that one instant takes; their rows appear together, with the last. "
    "More than 1 only where nobody but this library writes to the table.",
    1,
)
CHECKPOINT_IDENTIFIER: Final = Option(
    "hoodie.datasource.write.streaming.checkpoint.identifier",
    TEXT,
    "Name of the query in foreach_batch, beside Spark's query id where Spark tells it, or of the "
    "writer of numbered batch writes; the data source takes Spark's query id for a stream.",
    aliases=("hoodie.datasource.write.writer.identifier",),
)
BATCH_IDENTIFIER: Final = Option(
    "hoodie.datasource.write.batch.identifier",
    Kind(f"a whole number from 0 to {_INT64_MAX}", _number),
    "Number of a batch write among those of its writer, greater than all before; the same number "
    "again, whatever lies between, changes nothing.",
)
ACCEPT_DIFFERENT: Final = Option(
    "hoodie.py.replay.accept.different",
    BOOLEAN,
    "Take a batch that comes again with other rows than were committed, or of whose rows nothing "
    "is known any more, for done, rather than fail; for sources that do not give the same rows "
    "twice.",
    False,
)
ACCEPT_MISSED: Final = Option(
    "hoodie.py.stream.accept.missed.batches",
    BOOLEAN,
    "Let a stream go on in a table that has never seen it, though its batches do not begin with "
    "number 0, rather than fail: the rows of the earlier batches are not in the table.",
    False,
)

STREAM_OPTIONS: Final[tuple[Option[object], ...]] = (
    BATCHES_PER_COMMIT,
    CHECKPOINT_IDENTIFIER,
    BATCH_IDENTIFIER,
    ACCEPT_DIFFERENT,
    ACCEPT_MISSED,
)
"""Every option of this module, in the order of the option table."""

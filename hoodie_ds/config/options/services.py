"""The options that say which table services a write brings along."""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.option import BOOLEAN, Option

TABLE_SERVICES: Final = Option(
    "hoodie.table.services.enabled",
    BOOLEAN,
    "Whether writes bring any table service along; services by hand need no option.",
    True,
)
ASYNC_COMPACTION: Final = Option(
    "hoodie.datasource.compaction.async.enable",
    BOOLEAN,
    "Whether a stream into a merge-on-read table compacts it: its tasks share the work out.",
    True,
    aliases=("compaction.async.enabled",),
)
COMPACTION_SCHEDULE: Final = Option(
    "compaction.schedule.enabled",
    BOOLEAN,
    "Whether a stream plans compactions; by default if it compacts too.",
)
STREAMS_DO_NOT_COMPACT: Final = Option(
    "hoodie.datasource.write.streaming.disable.compaction",
    BOOLEAN,
    "Whether a stream neither plans compactions nor compacts, since another job does.",
    False,
)
INLINE_COMPACTION: Final = Option(
    "hoodie.compact.inline",
    BOOLEAN,
    "Whether a batch write is followed by the compaction that is due, in the same process.",
    False,
)
INLINE_SCHEDULE: Final = Option(
    "hoodie.compact.schedule.inline",
    BOOLEAN,
    "Whether a batch write is followed by the plan of a compaction, if one is due.",
    False,
)

SERVICE_OPTIONS: Final[tuple[Option[object], ...]] = (
    TABLE_SERVICES,
    ASYNC_COMPACTION,
    COMPACTION_SCHEDULE,
    STREAMS_DO_NOT_COMPACT,
    INLINE_COMPACTION,
    INLINE_SCHEDULE,
)
"""Every option of this module, in the order of the option table."""

"""Which table services come along with a write, as the user said.

A stream lives long and has nobody else to care for its table, so its services are on by default, as
in Hudi's streaming sink. A batch write brings along what it is asked for alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.options import services as keys
from hoodie_ds.config.options.archiving import ARCHIVE_AUTOMATIC
from hoodie_ds.config.options.catalog import SYNC_ENABLED
from hoodie_ds.config.options.cleaning import CLEAN_AUTOMATIC
from hoodie_ds.config.options.delta import DELTA_SYNC


class Service(str, Enum):
    """What may come along with a write, in the order in which it follows a commit."""

    COMPACTION = "compaction"
    COMPACTION_PLAN = "plan of a compaction"
    CLUSTERING = "clustering"
    DELTA = "sync into a Delta log"
    CLEAN = "clean"
    ARCHIVE = "archive"
    CATALOG = "sync into a catalog"


_OF_STREAMS: Final = frozenset(Service) - {
    Service.CLUSTERING,
    Service.DELTA,
    Service.CATALOG,
}


@dataclass(frozen=True, slots=True)
class ServiceSwitches:
    """The services of streams and of batch writes.

    Parameters
    ----------
    of_streams : frozenset of Service
        What a micro-batch brings along.
    of_writes : frozenset of Service
        What a batch write brings along.
    of_jobs : frozenset of Service
        What a job of its own does for the table.
    """

    of_streams: frozenset[Service] = _OF_STREAMS
    of_writes: frozenset[Service] = frozenset()
    of_jobs: frozenset[Service] = _OF_STREAMS

    @classmethod
    def of(cls, given: GivenOptions) -> ServiceSwitches:
        """Take the options out of those given, which note what is wrong."""
        compacts = given.get_or_default(keys.ASYNC_COMPACTION)
        plans = given.get(keys.COMPACTION_SCHEDULE)
        left_to_others = given.get_or_default(keys.STREAMS_DO_NOT_COMPACT)
        inline = given.get_or_default(keys.INLINE_COMPACTION)
        inline_plan = given.get_or_default(keys.INLINE_SCHEDULE)
        on = given.get_or_default(keys.TABLE_SERVICES)
        streams = {
            Service.COMPACTION: compacts and not left_to_others,
            Service.COMPACTION_PLAN: (compacts if plans is None else plans) and not left_to_others,
            Service.CLEAN: given.get_or_default(CLEAN_AUTOMATIC),
            Service.ARCHIVE: given.get_or_default(ARCHIVE_AUTOMATIC),
        }
        jobs = {**streams, Service.COMPACTION: compacts}
        writes = {
            Service.COMPACTION: inline,
            Service.COMPACTION_PLAN: inline or inline_plan,
            Service.CLEAN: given.get(CLEAN_AUTOMATIC) is True,
            Service.ARCHIVE: given.get(ARCHIVE_AUTOMATIC) is True,
        }
        delta = given.get_or_default(DELTA_SYNC)
        synced = {Service.CATALOG: given.get_or_default(SYNC_ENABLED), Service.DELTA: delta}
        of_all = (
            frozenset(service for service, wanted in some.items() if wanted)
            for some in (
                {**(streams if on else {}), **synced},
                {**(writes if on else {}), **synced},
                {**(jobs if on else {}), Service.DELTA: delta},
            )
        )
        return cls(*of_all)

    def of_batch(self, *, is_stream: bool) -> frozenset[Service]:
        """Return what one batch brings along."""
        return self.of_streams if is_stream else self.of_writes

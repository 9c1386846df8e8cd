"""Which table services run with a write.

A stream runs for long, often as the only job of its table, so its services are on by default, as
in Hudi's streaming sink. A batch write runs only what it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from hoodie_ds.config.archiving_options import ArchivingOptions
from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import BOOLEAN, Option

if TYPE_CHECKING:
    from typing import Self


class Service(str, Enum):
    """What may run with a write, in the order in which it follows a commit."""

    COMPACTION = "compaction"
    COMPACTION_PLAN = "plan of a compaction"
    CLUSTERING = "clustering"
    DELTA = "sync into a Delta log"
    METADATA = "metadata table"
    CLEAN = "clean"
    ARCHIVE = "archive"
    CATALOG = "sync into a catalog"


_OF_STREAMS: Final = frozenset(
    {Service.COMPACTION, Service.COMPACTION_PLAN, Service.CLEAN, Service.ARCHIVE}
)


@dataclass(frozen=True, kw_only=True)
class ServiceSwitches(OptionGroup):
    """The services of streams and of batch writes."""

    enabled: ClassVar[Option[bool]] = Option(
        "hoodie.table.services.enabled",
        BOOLEAN,
        "Whether writes run any table service; services by hand need no option.",
        True,
    )
    async_compaction: ClassVar[Option[bool]] = Option(
        "hoodie.datasource.compaction.async.enable",
        BOOLEAN,
        "Whether a stream into a merge-on-read table compacts it: its tasks share the work.",
        True,
        aliases=("compaction.async.enabled",),
    )
    compaction_schedule: ClassVar[Option[bool | None]] = Option(
        "compaction.schedule.enabled",
        BOOLEAN,
        "Whether a stream plans compactions; by default if it compacts too.",
    )
    streams_do_not_compact: ClassVar[Option[bool]] = Option(
        "hoodie.datasource.write.streaming.disable.compaction",
        BOOLEAN,
        "Whether a stream neither plans compactions nor compacts, because another job does.",
        False,
    )
    inline_compaction: ClassVar[Option[bool]] = Option(
        "hoodie.compact.inline",
        BOOLEAN,
        "Whether a batch write is followed by the compaction that is due, in the same process.",
        False,
    )
    inline_schedule: ClassVar[Option[bool]] = Option(
        "hoodie.compact.schedule.inline",
        BOOLEAN,
        "Whether a batch write is followed by the plan of a compaction, if one is due.",
        False,
    )
    of_streams: frozenset[Service] = _OF_STREAMS
    """What runs with a micro-batch."""
    of_writes: frozenset[Service] = frozenset()
    """What runs with a batch write."""
    of_jobs: frozenset[Service] = _OF_STREAMS
    """What a job that only serves the table runs."""

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        compacts, plans = (
            given.get_or_default(cls.async_compaction),
            given.get(cls.compaction_schedule),
        )
        by_others = given.get_or_default(cls.streams_do_not_compact)
        inline = given.get_or_default(cls.inline_compaction)
        cleans, archives = (
            given.get(CleaningOptions.automatic),
            given.get(ArchivingOptions.automatic),
        )
        streams = {
            Service.COMPACTION: compacts and not by_others,
            Service.COMPACTION_PLAN: (compacts if plans is None else plans) and not by_others,
            Service.CLEAN: cleans is not False,
            Service.ARCHIVE: archives is not False,
        }
        jobs = {**streams, Service.COMPACTION: compacts}
        writes = {
            Service.COMPACTION: inline,
            Service.COMPACTION_PLAN: inline or given.get_or_default(cls.inline_schedule),
            Service.CLEAN: cleans is True,
            Service.ARCHIVE: archives is True,
        }
        if not given.get_or_default(cls.enabled):
            streams = jobs = writes = {}
        return cls(
            of_streams=_switched_on(streams),
            of_writes=_switched_on(writes),
            of_jobs=_switched_on(jobs),
        )

    def of_batch(self, *, is_stream: bool) -> frozenset[Service]:
        """Return what runs with one batch."""
        return self.of_streams if is_stream else self.of_writes


def _switched_on(switches: Mapping[Service, bool]) -> frozenset[Service]:
    return frozenset(service for service, is_on in switches.items() if is_on)

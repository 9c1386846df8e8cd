"""Which table services come along with a write, as the user said.

A stream lives long and has nobody else to care for its table, so its services are on by default, as
in Hudi's streaming sink. A batch write brings along what it is asked for alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from hoodie_ds.config.archiving_options import ArchivingOptions
from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import BOOLEAN, Option

if TYPE_CHECKING:
    from typing import Self


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
    """What a micro-batch brings along."""
    of_writes: frozenset[Service] = frozenset()
    """What a batch write brings along."""
    of_jobs: frozenset[Service] = _OF_STREAMS
    """What a job of its own does for the table."""

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        compacts = given.get_or_default(cls.async_compaction)
        plans = given.get(cls.compaction_schedule)
        left_to_others = given.get_or_default(cls.streams_do_not_compact)
        inline = given.get_or_default(cls.inline_compaction)
        inline_plan = given.get_or_default(cls.inline_schedule)
        on = given.get_or_default(cls.enabled)
        streams = {
            Service.COMPACTION: compacts and not left_to_others,
            Service.COMPACTION_PLAN: (compacts if plans is None else plans) and not left_to_others,
            Service.CLEAN: given.get_or_default(CleaningOptions.automatic),
            Service.ARCHIVE: given.get_or_default(ArchivingOptions.automatic),
        }
        jobs = {**streams, Service.COMPACTION: compacts}
        writes = {
            Service.COMPACTION: inline,
            Service.COMPACTION_PLAN: inline or inline_plan,
            Service.CLEAN: given.get(CleaningOptions.automatic) is True,
            Service.ARCHIVE: given.get(ArchivingOptions.automatic) is True,
        }
        delta = given.get_or_default(CatalogOptions.delta_sync)
        synced = {
            Service.CATALOG: given.get_or_default(CatalogOptions.enabled),
            Service.DELTA: delta,
        }
        of_all = (
            frozenset(service for service, wanted in some.items() if wanted)
            for some in (
                {**(streams if on else {}), **synced},
                {**(writes if on else {}), **synced},
                {**(jobs if on else {}), Service.DELTA: delta},
            )
        )
        of_streams, of_writes, of_jobs = of_all
        return cls(of_streams=of_streams, of_writes=of_writes, of_jobs=of_jobs)

    def of_batch(self, *, is_stream: bool) -> frozenset[Service]:
        """Return what one batch brings along."""
        return self.of_streams if is_stream else self.of_writes

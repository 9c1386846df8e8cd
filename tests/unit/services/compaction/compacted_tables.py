"""A merge-on-read table of one or more partitions, each with one file group with a log file."""

from __future__ import annotations

import pyarrow as pa

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.compaction_plan import CompactionPlan
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.timeline import Timeline
from tests.faults.writers import NoPauses, Place
from tests.tables import BUCKETS, TRIPS, TYPE, trips

MOR = {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1"}


def rows(number: int, *partitions: str) -> pa.Table:
    """The rows of the batch with a number: one key that all have, and one of its own."""
    keys = ("0", str(number))
    return trips(*((key, p, number, float(number)) for p in partitions for key in keys))


def upsert(place: Place, number: int, *partitions: str) -> None:
    """Write a batch, in its own second."""
    place.clock.advance(1000)
    place.table.upsert(rows(number, *partitions))


def table(*partitions: str, **options: str) -> Place:
    """A table of two batches: base files, then log files."""
    place = Place({**MOR, **options})
    for number in (1, 2):
        upsert(place, number, *partitions)
    return place


def compactor(place: Place, storage: Storage | None = None, /, **options: str) -> Compactor:
    """What compacts it, in a process of its own."""
    parsed = WriteOptions.parse({**place.opts, **options, "path": "/t"})
    storage = storage or place.storage
    return Compactor(ServiceContext(parsed, storage, place.clock, place.ids, NoPauses()))


def scheduled(place: Place) -> tuple[Instant, CompactionPlan]:
    """Plan a compaction of all that there is."""
    place.clock.advance(1000)
    worker = compactor(place)
    instant = worker.schedule()
    assert instant is not None
    place.clock.advance(1000)
    return instant, worker.plan_of(instant)


def timeline(place: Place) -> Timeline:
    """The timeline as it is now."""
    return load_timeline(place.storage, 1)

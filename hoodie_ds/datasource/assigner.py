"""The file id assigner as a function for ``mapInArrow``, before the shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.datasource.task import in_worker, micro_batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.locate.file_id_assigner import FileIdAssigner
from hoodie_ds.sink.pinned_timeline import pin_timeline
from hoodie_ds.sink.task_writer import in_chunks
from hoodie_ds.timeline.timeline import Timeline


def assigning_mapper(
    options: WriteOptions, schema: pa.Schema, num_tasks: int, view: Timeline | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that adds the hidden columns of a shuffle over `num_tasks` tasks.

    `view` is the timeline that all tasks see; None in a stream, where every micro-batch pins its
    own.
    """

    def assign(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with in_worker():
            coordinator = Coordinator.of(options)
            if view is None:
                pin = partial(pin_timeline, coordinator.storage, micro_batch())
                plan = coordinator.preview(schema, pin=pin)
            else:
                plan = coordinator.preview(schema, view)
            assigner = FileIdAssigner(plan, num_tasks)
            for chunk in in_chunks(plan, batches):
                for assigned in assigner.assign(chunk):
                    yield from assigned.to_batches()

    return assign

"""Which file groups make way for an overwrite or a partition delete."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import chain, groupby

from hoodie_ds.config.kinds import Operation
from hoodie_ds.sink.batch import Batch
from hoodie_ds.table.file_slice import FileSlice


def replaced_groups(batch: Batch, partitions: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Find the live file groups that a batch replaces, in the table as the batch sees it.

    Parameters
    ----------
    batch : Batch
        The batch; nothing makes way for an operation that does not replace.
    partitions : collection of str
        Partition paths that the batch has rows of.

    Returns
    -------
    dict of str to tuple of str
        File ids by partition path, as a replace commit names them.
    """
    if not batch.operation.replaces or not batch.timeline.commits:
        return {}
    groups = (replaced.group for replaced in _replaced_slices(batch, partitions))
    by_partition = groupby(groups, key=lambda group: group.partition_path)
    return {path: tuple(group.file_id for group in found) for path, found in by_partition}


def _replaced_slices(batch: Batch, partitions: Collection[str]) -> Iterable[FileSlice]:
    view, patterns = batch.view, batch.options.partitions_to_delete
    if batch.operation is Operation.INSERT_OVERWRITE_TABLE:
        return view.slices_among(view.data_files())
    if batch.operation is Operation.DELETE_PARTITION and patterns is not None:
        if batch.options.exact_partitions:
            return view.slices_among(s for s in view.data_files() if s.folder in patterns)
        chosen = _any_of(patterns)
        return view.slices_among(s for s in view.data_files() if chosen.fullmatch(s.folder))
    return chain.from_iterable(map(view.latest_slices, sorted(partitions)))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """What matches any of some patterns, in which ``*`` stands for any text."""
    parts = (".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns)
    return re.compile("|".join(parts), re.DOTALL)

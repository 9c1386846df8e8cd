"""Which file groups make way for an overwrite or a partition delete."""

from __future__ import annotations

import re
from collections.abc import Collection

from hoodie_ds.config.kinds import Operation
from hoodie_ds.sink.batch import Batch
from hoodie_ds.table.fs_view import FileSystemView


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
    if not batch.operation.replaces:
        return {}
    view = batch.view
    chosen = sorted(path for path in _known(batch, view) if _is_chosen(batch, path, partitions))
    found = {path: tuple(s.group.file_id for s in view.latest_slices(path)) for path in chosen}
    return {path: ids for path, ids in found.items() if ids}


def _known(batch: Batch, view: FileSystemView) -> list[str]:
    return view.partition_paths() if batch.timeline.commits else []


def _is_chosen(batch: Batch, path: str, partitions: Collection[str]) -> bool:
    patterns = batch.options.partitions_to_delete
    if batch.operation is Operation.INSERT_OVERWRITE_TABLE:
        return True
    if batch.operation is Operation.DELETE_PARTITION and patterns is not None:
        return any(_matches(pattern, path) for pattern in patterns)
    return path in partitions


def _matches(pattern: str, path: str) -> bool:
    """Whether a path is what a pattern says, in which ``*`` stands for any text."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), path, re.DOTALL) is not None

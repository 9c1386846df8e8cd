"""Small files that tasks of one batch fill, each at most one of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hoodie_ds.errors import AlreadyExistsError
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.index.write_profile import SmallFile
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.paths import fill_claim_path


def claimed(context: WriteContext, small_files: Sequence[SmallFile]) -> list[SmallFile]:
    """Claim the first small file that no other task has, for a batch that only inserts.

    A second attempt of a task finds the claim of the first and fills another file: what the first
    attempt wrote is not named by the commit.

    Parameters
    ----------
    context : WriteContext
        Task and instant.
    small_files : sequence of SmallFile
        File groups that have room.

    Returns
    -------
    list of SmallFile
        One, or none.
    """
    for small in small_files:
        if _claim(context, small.slice.group):
            return [small]
    return []


def _claim(context: WriteContext, group: FileGroupId) -> bool:
    path = fill_claim_path(
        context.instant_time, context.batch_number, group.partition_path, group.file_id
    )
    with suppress(AlreadyExistsError):
        context.storage.put_if_absent(path, context.write_token.encode())
        return True
    return False

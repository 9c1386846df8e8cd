"""Names alone of the files in a folder, where nothing else of them is asked for.

A timeline is a folder of very many small files. To ask a disk for the size of each takes ten times
as long as to ask for their names.
"""

from __future__ import annotations

import builtins
from typing import Protocol, runtime_checkable

from hoodie_ds.storage.protocol import Storage


@runtime_checkable
class NamesFiles(Protocol):
    """A storage that lists names for less than it lists files."""

    def names(self, path: str) -> builtins.list[str]:
        """Return the names in a folder, those of folders and unfinished files among them."""
        ...


def names_in(storage: Storage, path: str) -> list[str]:
    """Return the names of the files in a folder, in any order; others may be among them.

    Parameters
    ----------
    storage : Storage
        Where the folder is.
    path : str
        The folder; a missing one has none.
    """
    names = getattr(storage, "names", None)  # asked for once: storages are wrapped in others
    if callable(names):
        return list(names(path))
    return [status.path.rpartition("/")[2] for status in storage.list(path)]

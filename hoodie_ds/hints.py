"""What messages tell an operator to do: the same of the same damage, whoever meets it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

FROM_COPY: Final = "restore it from a copy, or roll back the commit that wrote it"
"""Of a data file that is not as it was written."""
MISSING: Final = (
    "restore it from a copy before going on, or roll back the commit that wrote it and those after "
    "it"
)
"""Of a data file that is to be there."""
TWO_GROUPS: Final = "rows of one key may be in both: remove one after moving its rows"
"""Of a bucket with two file groups."""
REBUILD_FILTER: Final = "rewrite the file, or use an index of type SIMPLE"
"""Of a bloom filter that is of no use."""


def command(name: str, path: str, *words: str) -> str:
    """Return a command line of ``hoodie-py`` in backticks, whole, so that it can be pasted.

    Parameters
    ----------
    name : str
        The command, such as ``rollback``.
    path : str
        The table's base path.
    *words : str
        What comes after it, such as an instant time.
    """
    return f"`{shlex.join(['hoodie-py', name, path, *words])}`"


def missing(root: str, path: str, found: Iterable[str]) -> str:
    """Return the remedy of a data file that is to be there, which is another where none is.

    Parameters
    ----------
    root : str
        The table's base path.
    path : str
        Of the file.
    found : iterable of str
        Paths of the data files of its partition that are there, and of others.
    """
    partition = path.rpartition("/")[0]
    beside = (name for name in found if name.rpartition("/")[0] == partition)
    if not partition or not all(name.startswith(f"{partition}/.hoodie_") for name in beside):
        return MISSING
    return lost_partition(command("delete-partition", root, *exactly(partition)))


def lost_partition(delete: str) -> str:
    """Return the remedy of a partition without any of its files, by the command that deletes it."""
    return f"restore its partition from a copy before going on, or give its rows up by {delete}"


def exactly(partition: str) -> tuple[str, ...]:
    """Return the words of ``delete-partition`` that mean one partition."""
    return ("--exact", partition) if "*" in partition else (partition,)

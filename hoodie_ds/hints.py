"""What messages tell an operator to do: the same remedy wherever the same damage is found."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import Final

Change = Callable[..., str]

COPY: Final = "restore it from a copy"
"""For a file that is not as it was written, by code that knows no more about it."""
MISSING: Final = (
    "restore it from a copy before going on, or restore the table to a commit before the one that "
    "wrote it"
)
"""For a missing or damaged data file of which no earlier commit is known."""
PROPERTIES_ANEW: Final = (
    "remove nothing, and restore it from a copy, or put there that of a new table which is made "
    "elsewhere with the same options, as hoodie-py create makes one; Hudi's own command is "
    "`repair overwrite-hoodie-props`"
)
"""For a lost or damaged ``hoodie.properties``."""
TWO_GROUPS: Final = "rows of one key may be in both: remove one after moving its rows"
"""For a bucket with two file groups."""
REBUILD_FILTER: Final = "rewrite the file, or use an index of type SIMPLE"
"""For an unusable bloom filter."""


def command(name: str, path: str, *words: str) -> str:
    """Return a ``hoodie-py`` command line in backticks, complete, so that it can be pasted."""
    return f"`{shlex.join(['hoodie-py', name, path, *words])}`"


def missing(change: Change, path: str, found: Iterable[str], remedy: str) -> str:
    """Return the remedy for a missing data file, or another one if its partition has no file.

    `change` returns a command, as `Table.command` does. `found` are paths of the existing data
    files of the partition, and may have others.
    """
    partition = path.rpartition("/")[0]
    others = (name for name in found if name.rpartition("/")[0] == partition)
    if not partition or not all(name.startswith(f"{partition}/.hoodie_") for name in others):
        return remedy
    return lost_partition(change("delete-partition", *exactly(partition)))


def restored(change: Change, before: str | None) -> str:
    """Return the remedy for a missing data file by the commit before the one that wrote it."""
    if before is None:
        return MISSING
    return f"restore it from a copy before going on, or the table by {change('restore', before)}"


def compacted_again(completed: str, compact: str) -> str:
    """Return the remedy for a lost file of a compaction whose log files are all there."""
    return (
        f"restore it from a copy, or delete {completed} and write it again from the log files "
        f"with {compact}: no row is lost"
    )


def given_up(rollback: str) -> str:
    """Return the remedy for a damaged file of a completed write, by the command that undoes it."""
    return f"{COPY}, or delete it and give its rows up by {rollback}"


def plan_given_up(rollback: str) -> str:
    """Return the remedy for a damaged plan of a pending service, by the command that undoes it."""
    return f"{COPY}, or give the plan up with {rollback}: no row is lost"


def lost_partition(delete: str) -> str:
    """Return the remedy for a partition without any file, by the command that deletes it."""
    return f"restore its partition from a copy before going on, or give its rows up by {delete}"


def lost_savepoint(delete: str) -> str:
    """Return the remedy for a file that only a savepoint keeps, by the command that deletes it."""
    return f"restore it from a copy, or delete the savepoint by {delete}"


def exactly(partition: str) -> tuple[str, ...]:
    """Return the arguments of ``delete-partition`` that mean one partition."""
    return ("--exact", partition) if "*" in partition else (partition,)

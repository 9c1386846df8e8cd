"""Sizes and numbers that a writer keeps to, and that no user has to choose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What a writer keeps to; sizes in Arrow bytes.

    Parameters
    ----------
    chunk_bytes : int
        Rows that a task handles together: costs of each batch are negligible from this size on.
    part_bytes : int
        Arrow batches beyond this size are cut: a column holds no more than 2 GiB of strings.
    gathered_bytes : int
        Rows of a new file group in one task that are left to the commit, which begins the group
        with one base file for the rows of all tasks.
    writers_carried : int
        Writers whose last batches a commit carries. Each batch of one of more writers than that,
        which write in turn, costs a look for what was put aside of it.
    """

    chunk_bytes: int = 32 << 20
    part_bytes: int = 256 << 20
    gathered_bytes: int = 4 << 20
    writers_carried: int = 20

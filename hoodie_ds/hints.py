"""Commands that messages tell an operator to run, whole, so that they can be pasted."""

from __future__ import annotations

import shlex


def command(name: str, path: str, *words: str) -> str:
    """Return a command line of ``hoodie-py`` in backticks.

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

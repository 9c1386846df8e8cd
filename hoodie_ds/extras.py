"""Packages of extras such as ``spark`` and ``hive``, which not every installation has."""

from __future__ import annotations

import importlib.util

from hoodie_ds.errors import MissingPackageError


def require(user: str, install: str, *packages: str) -> None:
    """Raise `MissingPackageError` if `user` needs packages that are not installed.

    Nothing is imported; the message names all missing packages and `install`, what installs them.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingPackageError(f"{user} needs {', '.join(missing)}: {install}")


def remedy(extras: str) -> str:
    """Return the command that installs extras, such as ``spark,cli``."""
    # The distribution is on no package index, so its name alone installs nothing.
    return f"pip install '.[{extras}]' in a clone of hoodie-ds"

"""Packages that not every installation has: those of extras such as ``spark`` and ``hive``."""

from __future__ import annotations

import importlib.util

from hoodie_ds.errors import MissingPackageError


def require(user: str, extra: str, *packages: str) -> None:
    """Raise if a package that an extra brings is not installed; nothing is imported.

    Parameters
    ----------
    user : str
        What needs the packages, as the message names it.
    extra : str
        The extra of this distribution that brings them.
    *packages : str
        Names as they are imported.

    Raises
    ------
    MissingPackageError
        The message names all that are missing, and how to install them.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingPackageError(f"{user} needs {', '.join(missing)}: {remedy(extra)}")


def remedy(extra: str) -> str:
    """Return the command that installs an extra.

    Parameters
    ----------
    extra : str
        Its name.
    """
    # The distribution is on no package index, so its name alone installs nothing.
    return f"pip install '.[{extra}]' in a clone of hoodie-ds"

"""Texts that callers give: several where one may come, and the name of what is no text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hoodie_ds.errors import OptionError


def texts(name: str, given: str | Iterable[str]) -> tuple[str, ...]:
    """Return texts as they are; a single text counts as one, never as its letters.

    Parameters
    ----------
    name : str
        What the texts are for, as the caller knows it.
    given : str or iterable of str
        One text or several.

    Raises
    ------
    OptionError
        Something among them is no text.
    """
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise OptionError(name, given, "give a list of texts")
    found = tuple(given)
    for text in found:
        if not isinstance(text, str):
            raise OptionError(name, text, f"give texts; this is of type {type(text).__name__}")
    return found


def hook_name(hook: str | Callable[..., object]) -> str:
    """Return ``package.module:callable`` of a merge hook, as far as it has such a name."""
    if isinstance(hook, str):
        return hook
    named = hook if hasattr(hook, "__qualname__") else type(hook)
    return f"{named.__module__}:{named.__qualname__}"

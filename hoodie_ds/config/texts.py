"""Several texts where a caller may give one: a text is itself a sequence of texts, its letters."""

from __future__ import annotations

from collections.abc import Iterable

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

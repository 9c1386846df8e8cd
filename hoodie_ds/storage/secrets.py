"""Which file system options are secret, and how messages are masked.

An option is a secret unless its name shows otherwise: a user needs to see an endpoint or a region
in a message that no server answers there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from hoodie_ds.config.secret_values import HIDDEN, is_place

_LEAST_NUMBER: Final = 100_000
"""Smaller numbers are time-outs and sizes, which are part of other strings too."""

_LEAST_TEXT: Final = 4
"""Shorter strings cannot be told from words of the message."""


def secrets_among(options: Mapping[str, object]) -> list[str]:
    """Return the strings within a file system's arguments, nested ones too, that must be masked."""
    found = {text for name, value in options.items() for text in _texts(name, value)}
    return sorted(found, key=len, reverse=True)


def masked(text: str, secrets: list[str]) -> str:
    """Return a message with secrets hidden, if they are words of their own."""
    for secret in secrets:
        text = _word(secret).sub(HIDDEN, text)
    return text


def holds_any(text: str, secrets: list[str]) -> bool:
    """Whether a message holds one of some secrets."""
    return any(_word(secret).search(text) for secret in secrets)


def _word(secret: str) -> re.Pattern[str]:
    """A pattern that finds a secret, but not a longer word that contains a short one by chance."""
    found = re.escape(secret)
    return re.compile(found if len(secret) >= 2 * _LEAST_TEXT else rf"(?<!\w){found}(?!\w)")


def _texts(name: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _texts(str(key), part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(name, part)
    elif isinstance(value, int) and abs(value) >= _LEAST_NUMBER:
        yield str(value)
    elif isinstance(value, str) and len(value) >= _LEAST_TEXT and not is_place(name, value):
        yield value

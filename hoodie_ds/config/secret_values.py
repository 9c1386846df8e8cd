"""Which values of options a message may show: all but what may be a secret.

An option that is refused is shown with its value, but not under a name like that of a password, and
not a URL or a list of settings that may hold one. A name may be mistyped, so what is near counts.
An option of a file system is a secret, unless its name is that of a place, such as an endpoint or a
region, which a user needs to see in the message that nothing answers there.
"""

from __future__ import annotations

import difflib
import re
from itertools import pairwise
from typing import Final

HIDDEN: Final = "***"

_SECRET_WORDS: Final = (
    "password", "passwd", "passphrase", "pwd", "secret", "secrets", "secretkey", "token",
    "credential", "credentials", "auth", "authorization", "accesskey", "accountkey", "apikey",
    "privatekey", "sas", "jaas",
)  # fmt: skip
_BEFORE_KEY: Final = ("access", "account", "api", "private", "secret", "shared", "encryption")
_OF_STORAGE: Final = "hoodie.py.storage.option"
_PLACES: Final = re.compile(
    r"(^|[_.])(endpoint|region|bucket|profile|host|port|protocol|scheme|version|anon|ssl|verify|"
    r"addressing_style|cache_type|acl|project|location|base_url|account_name|container|timeout)(_|$)",
    re.IGNORECASE,
)
_ALIKE: Final = 0.8
_SHORT: Final = 4
"""Of up to so many letters, a word may be part of another one by chance."""


def shown(key: str, value: object) -> object:
    """Return the value of an option, known or mistyped, as a message may have it."""
    is_of_storage = key.lower().startswith(_OF_STORAGE)
    is_hidden = not is_place(key, str(value)) if is_of_storage else _is_secret(key)
    return HIDDEN if is_hidden or _may_hold_one(str(value)) else value


def is_place(name: str, value: str) -> bool:
    """Whether an option of a file system is no secret: it names where the table is, and how."""
    # A URL may have a password before its host.
    return "@" not in value and _PLACES.search(name) is not None


def _may_hold_one(text: str) -> bool:
    """Whether a value is a URL with a user or a signature, or names a password in itself."""
    return "@" in text or ("://" in text and "?" in text) or ("=" in text and _is_secret(text))


def _is_secret(key: str) -> bool:
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", ".", key[:200]).lower())
    pairs = pairwise(words)
    if any(second == "key" and _near(first, _BEFORE_KEY) for first, second in pairs):
        return True
    return any(_near(word, _SECRET_WORDS) or _holds_one(word) for word in words)


def _holds_one(word: str) -> bool:
    return any(secret in word for secret in _SECRET_WORDS if len(secret) > _SHORT)


def _near(word: str, names: tuple[str, ...]) -> bool:
    return bool(difflib.get_close_matches(word, names, n=1, cutoff=_ALIKE))

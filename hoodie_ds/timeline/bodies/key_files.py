"""Files with entries of the record index that the tasks of a write have made, as its commit says.

So any process that completes the write finds the same; see `hoodie_ds.metadata_table.task_keys`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

KEY_FILES: Final = "_hoodie_ds_key_files"
"""Key of the extra metadata of our commits: JSON of `KeyFiles`."""

KeyFiles: TypeAlias = Mapping[str, tuple[int, str]]
"""Each file by its name: how many bytes its log blocks have, and the xxh64 of what follows them."""


def key_files_of(extra: Mapping[str, str]) -> KeyFiles:
    """Read what a commit says; nothing if it does not say it."""
    try:
        found = json.loads(extra[KEY_FILES])
        return {str(name): (int(size), str(end)) for name, (size, end) in found.items()}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def as_extra(files: KeyFiles) -> dict[str, str]:
    """Return what a commit says, if there is anything."""
    return {KEY_FILES: json.dumps(files, sort_keys=True)} if files else {}

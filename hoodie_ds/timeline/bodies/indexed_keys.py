"""Which keys of a write its tasks have put into the record index of the metadata table themselves.

The commit names the log files and the data files whose new keys are in them, so that any process
that completes it finds the same. Only the record index's delta commit makes the log files count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

INDEXED_KEY: Final = "_hoodie_ds_indexed"
"""Key of the extra metadata of our commits: JSON of `IndexedKeys`."""


@dataclass(frozen=True, slots=True)
class IndexedKeys:
    """Log files of a record index of so many file groups, by path: their keys and bytes.

    `files` are the paths of the data files whose new keys they hold, all of them.
    """

    groups: int = 0
    logs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    files: frozenset[str] = frozenset()

    @classmethod
    def of(cls, extra: Mapping[str, str]) -> IndexedKeys:
        """Read what a commit says; nothing if it does not say it."""
        try:
            found = json.loads(extra[INDEXED_KEY])
            logs = {
                str(path): (int(keys), int(size)) for path, (keys, size) in found["logs"].items()
            }
            return cls(int(found["groups"]), logs, frozenset(map(str, found["files"])))
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
            return cls()

    @classmethod
    def joined(cls, parts: Iterable[IndexedKeys]) -> IndexedKeys:
        """Return that of several tasks; nothing if they have seen different indexes."""
        known = [part for part in parts if part.logs]
        if len({part.groups for part in known}) != 1:
            return cls()
        logs = {path: sizes for part in known for path, sizes in part.logs.items()}
        files = frozenset(path for part in known for path in part.files)
        return cls(known[0].groups, logs, files)

    def to_extra(self) -> dict[str, str]:
        """Return what a commit says, if there is anything."""
        if not self.logs:
            return {}
        body = {"groups": self.groups, "logs": dict(self.logs), "files": sorted(self.files)}
        return {INDEXED_KEY: json.dumps(body, sort_keys=True)}

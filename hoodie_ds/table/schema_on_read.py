"""Tables whose columns Hudi finds by number: its schema on read.

With ``hoodie.schema.on.read.enable`` an ``ALTER TABLE`` renames, drops and retypes columns without
a new data file. From then on each commit carries the columns with their numbers, and ``.schema``
holds all that the table has had. Here columns of files are found by name, so a renamed column would
be null, and a rewrite of its file would lose its values for good.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import HOODIE
from hoodie_ds.timeline.timeline import Timeline

LATEST_SCHEMA_KEY: Final = "latest_schema"
"""Key in a commit's extra metadata: the columns with their numbers."""

_HISTORIES: Final = f"{HOODIE}/.schema"
_SUFFIX: Final = ".schemacommit"
_OPTION: Final = "hoodie.schema.on.read.enable"
_UNTOLD: Final = f"{_HISTORIES} does not say which"
_NAMED: Final = 5


def check_found_by_name(storage: Storage, numbered: str, path: str) -> None:
    """Refuse to read a table whose files have columns under other names or types than now.

    `numbered` is what the newest commit, at `path`, has under `LATEST_SCHEMA_KEY`. Raises
    `UnsupportedTableError` if a column was renamed, dropped or retyped, or nothing shows that none
    was.
    """
    _refuse(storage, path, _told(storage, _history_files(storage), numbered))


def check_history(storage: Storage, timeline: Timeline, path: str) -> None:
    """Refuse a table whose newest commit, at `path`, drops its history of numbered columns.

    A job of Hudi without the option, after one with it, puts such a commit. Raises as
    `check_found_by_name`.
    """
    found = _history_files(storage)
    files = [file for file in found if timeline.is_committed(_time_of(file))]
    if files:
        _refuse(storage, path, _told(storage, files))


def _refuse(storage: Storage, path: str, changes: str) -> None:
    """Raise the error of a table some of whose columns differ from those in files."""
    if changes:
        raise UnsupportedTableError(
            f"{storage.root}: commit {path} says that columns were renamed, dropped or retyped "
            f"with {_OPTION} ({changes}), while data files hold them as they were; read the table "
            f"with Hudi on the JVM and {_OPTION}=true, and write the rows into a new table to read "
            "them here"
        )


def refuse_to_write(storage: Storage, path: str) -> None:
    """Refuse to write to a table whose columns have numbers: a commit of ours would drop them.

    Hudi would then find its columns by their present names, or by numbers that files of ours do not
    have. Raises `UnsupportedTableError` always.
    """
    raise UnsupportedTableError(
        f"{storage.root}: commit {path} numbers the columns ({_OPTION}), which this release does "
        f"not keep up: renamed and dropped columns would lose their values; write to the table "
        f"with Hudi on the JVM and {_OPTION}=true, or let it write the rows into a new table"
    )


def _told(storage: Storage, files: Sequence[str], numbered: str | None = None) -> str:
    """The changes of columns in histories, as a commit numbers them or as they are now."""
    try:
        versions = json.loads(storage.read(max(files)))["schemas"]
        newest = max(versions, key=lambda version: version["version_id"])
        return _changes(newest if numbered is None else json.loads(numbered), versions)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _UNTOLD


def _changes(now: dict[str, Any], versions: Sequence[dict[str, Any]]) -> str:
    """What differs from before; empty if names and types of all columns are the same."""
    if now["version_id"] not in [version["version_id"] for version in versions]:
        return _UNTOLD
    columns = dict(_numbered(now, ""))
    changes = {
        _change(was, columns.get(number))
        for version in versions
        for number, was in _numbered(version, "")
        if columns.get(number) != was
    }
    more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
    return ", ".join(sorted(changes)[:_NAMED]) + more


def _history_files(storage: Storage) -> list[str]:
    listed = (status.path for status in storage.list(_HISTORIES))
    return [path for path in listed if path.endswith(_SUFFIX)]


def _time_of(history: str) -> str:
    return history.rpartition("/")[2].removesuffix(_SUFFIX).partition("_")[0]


def _change(was: tuple[str, str], now: tuple[str, str] | None) -> str:
    (path, kind), (new_path, new_kind) = was, now or ("", "")
    if now is None:
        return f"{path!r} was dropped"
    if path == new_path:
        return f"{path!r} was {kind} and is {new_kind}"
    return f"{path!r} is {new_path!r}"


def _numbered(node: object, path: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Number, path and type of all fields below a type of Hudi's ``InternalSchema``."""
    match node:
        case {"type": "record", "fields": [*below]}:
            fields = [(one["id"], f"{path}.{one['name']}", one["type"]) for one in below]
        case {"type": "array", "element_id": number, "element": kind}:
            fields = [(number, f"{path}.element", kind)]
        case {"type": "map", "value_id": number, "value": kind}:  # keys are strings
            fields = [(number, f"{path}.value", kind)]
        case str():
            return
        case _:
            raise TypeError(node)
    for number, name, kind in fields:
        kind_name = kind["type"] if isinstance(kind, dict) else str(kind)
        yield number, (name.removeprefix("."), kind_name)
        yield from _numbered(kind, name)

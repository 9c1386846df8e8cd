"""Tables whose columns Hudi finds by number: its schema on read.

With ``hoodie.schema.on.read.enable`` an ``ALTER TABLE`` renames, drops and retypes columns without
a new data file. From then on each commit carries the columns with their numbers, and ``.schema``
has them as they were at all times. A file has the names of its own time. As Hudi's
``InternalSchemaMerger`` does, a column is looked up there by its number, so one that was dropped
does not come back in another of its name.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from hoodie_ds.errors import (
    AlreadyExistsError,
    CorruptFileError,
    UnsupportedTableError,
)
from hoodie_ds.formats.renaming import Renaming
from hoodie_ds.hints import COPY
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.numbering import is_one_value
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant
from hoodie_ds.timeline.paths import HOODIE
from hoodie_ds.timeline.timeline import Timeline

LATEST_SCHEMA_KEY: Final = "latest_schema"
"""Key in a commit's extra metadata: the columns with their numbers."""

ALTER_SCHEMA: Final = "ALTER_SCHEMA"
"""Hudi's name of the operation that changes columns."""

FIRST_KEY: Final = "_hoodie_ds_first_columns"
"""Key in the extra metadata of the first commit that numbers columns: those of before, in a list.
"""

HISTORIES: Final = f"{HOODIE}/.schema"
"""Folder of the histories, each of which has the columns of all times up to its own."""

_SUFFIX: Final = ".schemacommit"
_OPTION: Final = "hoodie.schema.on.read.enable"
_NAMED: Final = 5
_MALFORMED: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class ColumnHistory:
    """Under which names the files of a table have its columns.

    `version` numbers the columns as they are looked for; 0 in a table without numbers. A file that
    was written from one of the times `since` on is read by the renaming at the same place.
    """

    version: int = 0
    since: tuple[int, ...] = ()
    renamings: tuple[Renaming | None, ...] = ()

    def renaming(self, time: str) -> Renaming | None:
        """Return how a file of an instant names columns; None if they have the table's names."""
        if not self.since:
            return None
        return self.renamings[max(bisect_right(self.since, int(time)) - 1, 0)]

    def keeps(self, names: Collection[str]) -> bool:
        """Whether columns have the same names in all files."""
        renamings = [one for one in self.renamings if one is not None]
        return all(one.stored([name]) == {name} for one in renamings for name in names)


ALL_AS_NOW: Final = ColumnHistory()
"""The history of a table all of whose files have the table's names."""


@dataclass(frozen=True, slots=True)
class NumberedColumns:
    """The columns that a table has, and those of all times, oldest first, as Hudi's JSON."""

    now: dict[str, Any]
    all: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        """Return the present columns as commits carry them."""
        return as_json(self.now)

    def history(self) -> ColumnHistory:
        """Return under which names files have the columns."""
        renamings = tuple(renaming_of(version, self.now) for version in self.all)
        if not any(renamings):
            return ColumnHistory(_version(self.now))
        return ColumnHistory(_version(self.now), tuple(map(_version, self.all)), renamings)

    def changes(self) -> str:
        """Return which names and types have changed; empty if none."""
        columns = dict(_numbered(self.now, ""))
        changes = {
            _change(was, columns.get(number))
            for version in self.all
            for number, was in _numbered(version, "")
            if columns.get(number) != was
        }
        more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
        return ", ".join(sorted(changes)[:_NAMED]) + more


def columns_of(storage: Storage, timeline: Timeline, numbered: str, path: str) -> NumberedColumns:
    """Return the columns that a commit numbers, and those of before.

    `numbered` is what the commit, at `path`, has under `LATEST_SCHEMA_KEY`. Raises
    `UnsupportedTableError` if those of before are not known.
    """
    try:
        now = json.loads(numbered)
        # A history may have the columns of a write that failed.
        found = [
            version
            for version in _read(storage, _history_files(storage))
            if not version["version_id"] or timeline.is_committed(str(version["version_id"]))
        ]
        if now["version_id"] not in map(_version, found):
            raise KeyError(now["version_id"])
        columns = NumberedColumns(now, tuple(found))
        columns.history()
        columns.changes()
    except (*_MALFORMED, CorruptFileError) as error:
        raise UnsupportedTableError(
            f"{storage.root}: commit {path} numbers the columns ({_OPTION}), and {HISTORIES} does "
            "not say under which names data files have them; read the table with Hudi on the JVM "
            f"and {_OPTION}=true, and write the rows into a new table to read them here"
        ) from error
    return columns


def check_same_names(storage: Storage, columns: NumberedColumns, remedy: str) -> None:
    """Refuse to have files read by the names and types that a table has now, unless they have them.

    Raises `UnsupportedTableError`.
    """
    if changes := columns.changes():
        raise UnsupportedTableError(
            f"{storage.root}: columns are renamed, dropped or retyped with {_OPTION} ({changes}), "
            "while data files have them as they were, where other engines look for the present "
            f"names; {remedy}"
        )


def check_history(storage: Storage, timeline: Timeline, path: str) -> None:
    """Refuse a table whose newest commit, at `path`, drops its history of numbered columns.

    A job of Hudi without the option, after one with it, puts such a commit. Raises
    `UnsupportedTableError` if a column was renamed, dropped or retyped before, or that is unknown.
    """
    files = _committed(storage, timeline)
    if not files:
        return
    try:
        versions = _read(storage, files)
        changes = NumberedColumns(max(versions, key=_version), tuple(versions)).changes()
    except (*_MALFORMED, CorruptFileError):
        changes = f"{HISTORIES} does not say which"
    if changes:
        raise UnsupportedTableError(
            f"{storage.root}: commit {path} does not number the columns, as commits before it do "
            f"({_OPTION}): columns were renamed, dropped or retyped ({changes}), and which of them "
            f"its files have is not known; write to the table with Hudi on the JVM and "
            f"{_OPTION}=true, which numbers them again, or roll the commit back"
        )


def refuse_to_change_version(storage: Storage) -> None:
    """Refuse to change the version of a table whose columns have numbers.

    The histories have other names in another layout of the timeline. Raises
    `UnsupportedTableError` always.
    """
    raise UnsupportedTableError(
        f"{storage.root}: the columns have numbers ({_OPTION}), and {HISTORIES} is not converted "
        "to another version; keep the version, or write the rows into a new table"
    )


def put_history(table: Table, completed: Instant, body: bytes) -> None:
    """Put the columns of all times under the time of a commit, if it numbers them; idempotent.

    Called before the commit is visible. Hudi looks for histories among those of commits on the
    active timeline alone, so each commit has one, and, as in Hudi, those of others are deleted.
    """
    if LATEST_SCHEMA_KEY.encode() not in body or completed.action not in WRITE_ACTIONS:
        return  # most bodies need not be parsed
    extra = CommitMetadata.from_bytes(body, f"commit {completed.time}").extra
    if LATEST_SCHEMA_KEY not in extra:  # it is the name of a column or a folder
        return
    now = json.loads(extra[LATEST_SCHEMA_KEY])
    storage = table.storage
    listed = [status.path for status in storage.list(HISTORIES)]
    timeline = table.load_timeline()  # later, so that it has the instants of all that are listed
    counted = _committed(storage, timeline)
    known = _read(storage, counted) if counted else json.loads(extra.get(FIRST_KEY, "[]"))
    others = [one for one in known if _version(one) != _version(now)]
    versions = sorted([now, *others], key=_version, reverse=True)
    name = "_".join(filter(None, (completed.time, completed.completion_time)))
    with suppress(AlreadyExistsError):
        storage.put_if_absent(
            f"{HISTORIES}/{name}{_SUFFIX}", as_json({"schemas": versions}).encode()
        )
    kept = {completed.time, *map(_time_of, counted[-1:])}
    for path in listed:
        time = _time_of(path)
        if time not in kept and timeline.commit_at(time) is None and not timeline.is_pending(time):
            storage.delete(path)


def check_never_numbered(storage: Storage, timeline: Timeline) -> None:
    """Refuse to number columns anew that have had numbers; raises `UnsupportedTableError`."""
    if _committed(storage, timeline):
        raise UnsupportedTableError(
            f"{storage.root}: a job of Hudi without {_OPTION} has taken the numbers away that "
            f"columns have in {HISTORIES}; alter the table with Hudi on the JVM"
        )


def _committed(storage: Storage, timeline: Timeline) -> list[str]:
    """The histories of commits that are in the table, oldest first."""
    return [path for path in _history_files(storage) if timeline.is_committed(_time_of(path))]


def _read(storage: Storage, files: Sequence[str]) -> list[dict[str, Any]]:
    """The versions in the newest of some histories, each of which has those of before; by time."""
    path = max(files)
    try:
        return sorted(json.loads(storage.read(path))["schemas"], key=_version)
    except _MALFORMED as error:
        raise CorruptFileError(f"{storage.root}/{path}: {error!r:.200}", COPY, path) from error


def _version(columns: dict[str, Any]) -> int:
    return int(columns["version_id"])


def _history_files(storage: Storage) -> list[str]:
    """The histories, oldest first."""
    listed = (status.path for status in storage.list(HISTORIES))
    return sorted(path for path in listed if path.endswith(_SUFFIX))


def _time_of(history: str) -> str:
    return history.rpartition("/")[2].partition(".")[0].partition("_")[0]


def as_json(value: object) -> str:
    """Return JSON as Hudi writes it."""
    return json.dumps(value, separators=(",", ":"))


def renaming_of(was: object, now: object) -> Renaming | None:
    """Return how structs of before name the fields of now; None if a look by name finds the same.

    A name that is now another column's is not the same, whether or not its own is still there.
    """
    columns = {field["id"]: field for field in _fields(now)}
    taken = {field["name"] for field in columns.values()}
    fields, is_same = dict[str, tuple[str, Renaming | None]](), True
    for field in _fields(was):
        name, column = field["name"], columns.get(field["id"])
        if column is None:
            is_same = is_same and name not in taken
            continue
        fields[name] = column["name"], renaming_of(field["type"], column["type"])
        is_same = is_same and fields[name] == (name, None)
    return None if is_same else Renaming(fields)


def _fields(kind: object) -> Sequence[dict[str, Any]]:
    """The fields of a struct, or of the structs in a list or a map; none of other types."""
    match kind:
        case {"type": "record", "fields": [*fields]}:
            return fields
        case {"type": "array", "element": within} | {"type": "map", "value": within}:
            return _fields(within)
        case str():
            return ()
    raise TypeError(kind)


def _change(was: tuple[str, str], now: tuple[str, str] | None) -> str:
    (path, kind), (new_path, new_kind) = was, now or ("", "")
    if now is None:
        return f"{path!r} was dropped"
    if path == new_path:
        return f"{path!r} was {kind} and is {new_kind}"
    return f"{path!r} is {new_path!r}"


def _numbered(node: object, path: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Number, path and type of all fields below a type of Hudi's ``InternalSchema``.

    Those of a BLOB or VARIANT do not count: other columns have their numbers, too.
    """
    if is_one_value(node):
        return
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

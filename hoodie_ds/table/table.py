"""Opening, creating and changing a table: the life of its ``hoodie.properties``.

That file is what makes a folder a table. It is put whole or not at all, so a creation that was
interrupted has not happened, and is simply repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import (
    AlreadyExistsError,
    CorruptFileError,
    NotFoundError,
    OptionError,
    StorageError,
    TableNotFoundError,
    TimelineError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.hints import PROPERTIES_ANEW, command
from hoodie_ds.storage.probe import PROBES
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.commands import dropping
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import HOODIE, LAYOUTS, PROPERTIES, PROPERTIES_BACKUP
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its storage and its properties."""

    storage: Storage
    properties: TableProperties

    @property
    def layout(self) -> int:
        """Version of the layout of its timeline."""
        return self.properties.layout_version

    def load_timeline(self) -> Timeline:
        """Load the active timeline; see `hoodie_ds.timeline.loading.load_timeline`.

        Raises `TimelineError` if the properties are those of another version than the timeline.
        """
        timeline = load_timeline(self.storage, self.layout)
        if not timeline.instants and self._is_left_empty():
            raise TimelineError(
                f"{self.storage.root}: {PROPERTIES} is that of version {self.properties.version}, "
                "and the timeline that of another: a process that changed the version was stopped, "
                "and put the file late; call upgrade or downgrade to the version that it is to have"
            )
        return timeline

    def _is_left_empty(self) -> bool:
        """See `is_left_empty`; a change of the properties since is for others to detect."""
        if not is_left_empty(self.storage, self.layout):
            return False
        now = _opened(self.storage)
        return now is not None and now.layout == self.layout

    def instant(self, time: str, action: Action, state: State) -> Instant:
        """Return an instant as the table's timeline names it, without a completion time."""
        return Instant(time, action, state, layout=self.layout)

    def command(self, name: str, *words: str) -> str:
        """Return the line of ``hoodie-py`` that changes the table; see `hoodie_ds.hints.command`.

        A metadata table that is not kept has to be dropped first, so the line says that it may be.
        """
        return command(name, self.storage.root, *words, *dropping(self.properties, name))


def is_left_empty(storage: Storage, layout: int) -> bool:
    """Whether a layout has no instants, and another one has completed ones.

    So it is where an upgrade was stopped as it put the properties of `layout`, and other processes
    have completed it and changed the version back before it continued. A new table has instants in
    no layout.
    """
    if load_timeline(storage, layout).instants:
        return False
    return any(load_timeline(storage, other).completed for other in LAYOUTS if other != layout)


def find_table(storage: Storage) -> Table | None:
    """Open the table of a folder that is to be written to; None if the folder is absent or empty.

    Raises `OptionError` if the folder holds other files, and no table, and `CorruptFileError` if
    ``hoodie.properties`` is damaged, or missing next to other files of a table.
    """
    table = _opened(storage)
    if table is None and _has_other_files(storage):
        table = _opened(storage)  # another writer may have created it since
        if table is None:
            raise OptionError(
                "path",
                storage.root,
                "the folder is not empty and holds no Hudi table; name another",
            )
    return table


def open_table(storage: Storage) -> Table:
    """Open a table; raises `TableNotFoundError`, and `CorruptFileError` as `find_table`."""
    table = _opened(storage)
    if table is None:
        raise TableNotFoundError(
            f"{storage.root} holds no Hudi table ({PROPERTIES} is missing); check the path, or "
            "write to it to create the table"
        )
    return table


def create_table(storage: Storage, properties: TableProperties, now_ms: int) -> Table:
    """Create a table; if another writer was faster, open the one that it created."""
    try:
        storage.put_if_absent(PROPERTIES, properties.format(now_ms))
    except AlreadyExistsError:
        return open_table(storage)
    return Table(storage, properties)


def check_outside_tables(root: str, open_storage: Callable[[str], Storage]) -> None:
    """Refuse a folder within another table, whose readers would read the new one's files.

    `root` is an absolute path or a URL; `open_storage` opens a folder further up. Raises
    `OptionError`.
    """
    scheme, separator, path = root.rpartition("://")
    names = path.split("/")
    for count in range(len(names) - 1, 0, -1):
        parent = scheme + separator + "/".join(names[:count])
        if not names[count - 1]:
            continue
        # Without permission to read there, it cannot be known.
        with suppress(StorageError):
            open_storage(parent).read(PROPERTIES)
            raise OptionError(
                "path", root, f"it is within the table {parent}; name a folder outside of it"
            )


def check_unchanged(table: Table) -> None:
    """Refuse if a table is not any more what it was when it was opened.

    Another engine may have upgraded it and moved its timeline, or given it a metadata table, which
    would lack what is written now. Raises `TableNotFoundError`, `UnsupportedTableError`, or
    `WriteConflictError` if other properties were changed.
    """
    root, found = table.storage.root, _read_properties(table.storage)
    if found is None:
        raise TableNotFoundError(
            f"{root}: the table was removed while a batch was written to it; nothing was committed"
        )
    if found.same_table(table.properties):
        return
    try:
        found.check_writable()
    except UnsupportedTableError as error:
        raise UnsupportedTableError(
            f"{root}: another engine changed the table while a batch was written to it; nothing "
            f"was committed: {error}"
        ) from error
    if found.layout_version != table.layout:
        raise UnsupportedTableError(
            f"{root}: another engine changed the table while a batch was written to it; nothing "
            f"was committed: it has table version {found.version} now, whose timeline is "
            "elsewhere; run the batch again"
        )
    keys = ", ".join(found.differing_keys(table.properties))
    raise WriteConflictError(
        f"{root}: another writer changed {keys} in {PROPERTIES} while a batch was written; the "
        "batch is not committed and can be run again"
    )


def update_properties(
    table: Table, changes: Mapping[str, str], removals: Collection[str], now_ms: int
) -> Table:
    """Change keys of a table's properties by Hudi's protocol: backup, new file, no backup.

    Wherever it is killed, a reader finds one of the two files whole: the old properties or the new
    ones. `now_ms` is for the comment in the file.
    """
    changed = table.properties.without(removals).with_changes(changes)
    # From what was read, not from the file: that may be damaged, and the backup what was read.
    table.storage.replace(PROPERTIES_BACKUP, table.properties.format(now_ms))
    table.storage.replace(PROPERTIES, changed.format(now_ms, "Updated at"))
    table.storage.delete(PROPERTIES_BACKUP)
    return Table(table.storage, changed)


def _opened(storage: Storage) -> Table | None:
    """Open the table, if there is one; refuse files of a table without its properties."""
    properties = _read_properties(storage)
    if properties is None and _has_table_files(storage):
        # The listed files may be of a table that another writer has created since the first read.
        properties = _read_properties(storage)
        if properties is None:
            raise _without_properties(storage)
    return None if properties is None else Table(storage, properties)


def _without_properties(storage: Storage) -> CorruptFileError:
    """Return the error of a table whose properties are gone, as its backup is."""
    if not any(load_timeline(storage, layout).completed for layout in LAYOUTS):
        return CorruptFileError(
            f"{storage.root}/{HOODIE} has files but no hoodie.properties and no completed instant: "
            "the creation of a table was interrupted, or they were lost",
            f"restore them from a copy, or remove {storage.root}/{HOODIE} if nothing was ever "
            "written to the table",
        )
    return CorruptFileError(
        f"{storage.root}/{HOODIE}/hoodie.properties is lost or empty, and has no backup",
        PROPERTIES_ANEW,
    )


def _has_table_files(storage: Storage) -> bool:
    """Whether there is any file of a table; probes are put before it is created."""
    listed = storage.list(HOODIE, recursive=True)
    return not all(status.path.startswith(PROBES) for status in listed)


def _has_other_files(storage: Storage) -> bool:
    folders = [found.path for found in storage.list("", folders=True) if found.path != HOODIE]
    return bool(folders or storage.list(""))


def _read_properties(storage: Storage) -> TableProperties | None:
    """Read the properties, or their backup if they are missing or damaged.

    Hudi deletes the old file before it puts the new one, so the first is read again after the
    backup: an update may have ended in between.
    """
    tried = [_try_properties(storage, PROPERTIES)]
    for path in (PROPERTIES_BACKUP, PROPERTIES):
        if isinstance(tried[-1], TableProperties):
            break
        tried.append(_try_properties(storage, path))
    if isinstance(tried[-1], TableProperties):
        return tried[-1]
    for damage in tried:
        if isinstance(damage, CorruptFileError):
            raise damage
    return None


def _try_properties(storage: Storage, path: str) -> TableProperties | CorruptFileError | None:
    try:
        data = storage.read(path)
        return TableProperties.parse(data, f"{storage.root}/{path}") if data else None
    except NotFoundError:
        return None
    except CorruptFileError as error:
        return error

"""Opening, creating and changing a table: the life of its ``hoodie.properties``.

That file is what makes a folder a table. It is put whole or not at all, so a creation that was
interrupted has not happened, and is simply done again.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.table_properties import TableProperties
from hoodie_ds.errors import (
    AlreadyExistsError,
    CorruptFileError,
    NotFoundError,
    OptionError,
    TableNotFoundError,
)
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import HOODIE, METADATA_TABLE, PROPERTIES, PROPERTIES_BACKUP

_METADATA_KEYS = (
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: where it is and what it says of itself."""

    storage: Storage
    properties: TableProperties


def find_table(storage: Storage) -> Table | None:
    """Open the table of a folder that is to be written to, if it is one.

    Returns
    -------
    Table or None
        None where a table may be created: the folder is absent or empty.

    Raises
    ------
    OptionError
        The folder holds other files, and no table.
    CorruptFileError
        ``hoodie.properties`` is damaged, or missing beside other files of a table.
    """
    properties = _read_properties(storage)
    if properties is not None:
        return Table(storage, properties)
    if storage.list(HOODIE, recursive=True):
        raise CorruptFileError(
            f"{storage.root}/{HOODIE} has files but no hoodie.properties: the creation of a table "
            "was interrupted, or the file was lost; restore it, or remove the folder"
        )
    folders = [found.path for found in storage.list("", folders=True) if found.path != HOODIE]
    if folders or storage.list(""):
        raise OptionError(
            "path", storage.root, "the folder is not empty and holds no Hudi table; name another"
        )
    return None


def open_table(storage: Storage) -> Table:
    """Open a table.

    Raises
    ------
    TableNotFoundError
        There is none.
    CorruptFileError
        ``hoodie.properties`` is damaged.
    """
    properties = _read_properties(storage)
    if properties is None:
        raise TableNotFoundError(
            f"{storage.root} holds no Hudi table ({PROPERTIES} is missing); check the path, or "
            "write to it to create the table"
        )
    return Table(storage, properties)


def create_table(storage: Storage, properties: TableProperties, now_ms: int) -> Table:
    """Create a table; where another writer was faster, open the one that it created."""
    try:
        storage.put_if_absent(PROPERTIES, properties.format(now_ms))
    except AlreadyExistsError:
        return open_table(storage)
    return Table(storage, properties)


def drop_metadata_table(table: Table, now_ms: int) -> Table:
    """Switch a table's metadata table off, as Hudi does for a writer that does not keep one.

    First the property, then the files: a reader that still sees the property fails, rather than
    trust a metadata table that is out of date.
    """
    properties = table.properties.without(_METADATA_KEYS)
    body = properties.format(now_ms, "Updated at")
    table.storage.replace(PROPERTIES_BACKUP, table.storage.read(PROPERTIES))
    table.storage.replace(PROPERTIES, body)
    table.storage.delete(PROPERTIES_BACKUP)
    table.storage.delete(METADATA_TABLE)
    return Table(table.storage, properties)


def _read_properties(storage: Storage) -> TableProperties | None:
    """Read the properties, or their backup while another writer replaces them."""
    try:
        data = storage.read(PROPERTIES)
        if data:
            return TableProperties.parse(data, f"{storage.root}/{PROPERTIES}")
    except NotFoundError:
        data = None
    try:
        backup = storage.read(PROPERTIES_BACKUP)
    except NotFoundError:
        if data is None:
            return None
        raise CorruptFileError(
            f"{storage.root}/{PROPERTIES} is empty and there is no backup; restore it"
        ) from None
    return TableProperties.parse(backup, f"{storage.root}/{PROPERTIES_BACKUP}")

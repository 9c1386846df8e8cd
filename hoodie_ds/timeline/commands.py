"""Lines of ``hoodie-py`` that change a table, for errors of what knows its storage alone."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.properties.table_properties import TableProperties, is_kept
from hoodie_ds.errors import HoodieError
from hoodie_ds.hints import command
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import PROPERTIES

DROPPING: Final = ("--conf", f"{FileOptions.metadata_enable.key}=false")
"""Says that a metadata table may be dropped."""
_REBUILDING: Final = ("upgrade", "downgrade")
"""Changes that keep no metadata table."""


def changing(storage: Storage, name: str, *words: str) -> str:
    """Return what `Table.command` does; the table's properties are read."""
    with suppress(HoodieError):
        words += dropping(TableProperties.parse(storage.read(PROPERTIES), PROPERTIES), name)
    return command(name, storage.root, *words)


def dropping(properties: TableProperties, name: str) -> tuple[str, ...]:
    """Return the option by which a change drops the metadata table, if it has to."""
    is_lost = name in _REBUILDING or not is_kept(properties)
    return DROPPING if properties.metadata_partitions and is_lost else ()

"""Lines of ``hoodie-py`` that change a table, for errors of what knows its storage alone."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import HoodieError
from hoodie_ds.hints import command
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import PROPERTIES

DROPPING: Final = ("--conf", f"{FileOptions.metadata_enable.key}=false")
"""Says that a metadata table may be dropped, as it has to be before a change."""


def changing(storage: Storage, name: str, *words: str) -> str:
    """Return what `Table.command` does; the table's properties are read."""
    with suppress(HoodieError):
        if TableProperties.parse(storage.read(PROPERTIES), PROPERTIES).metadata_partitions:
            words += DROPPING
    return command(name, storage.root, *words)

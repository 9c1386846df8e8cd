"""The options of change data capture: what a table keeps of each change beside the rows."""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.enums import SupplementalLogging
from hoodie_ds.config.option import BOOLEAN, Option, choice

CDC_ENABLED: Final = Option(
    "hoodie.table.cdc.enabled",
    BOOLEAN,
    "Whether the table keeps change data: files with what a commit changed, beside the base files "
    "that it writes anew, for queries of changes. It is fixed at creation.",
    aliases=("cdc.enabled",),
)
SUPPLEMENTAL_LOGGING: Final = Option(
    "hoodie.table.cdc.supplemental.logging.mode",
    choice(SupplementalLogging),
    "What is kept of a change: its operation and key, the row before it too, or the rows before "
    "and after it, as without this option. It is fixed at creation.",
    aliases=("cdc.supplemental.logging.mode",),
)

CHANGE_OPTIONS: Final[tuple[Option[object], ...]] = (CDC_ENABLED, SUPPLEMENTAL_LOGGING)
"""In the order of the option table."""

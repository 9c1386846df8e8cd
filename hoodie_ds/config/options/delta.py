"""The options of the Delta log beside a table."""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.option import BOOLEAN, Option

DELTA_SYNC: Final = Option(
    "hoodie.py.delta.sync",
    BOOLEAN,
    "Whether each commit and each table service is followed by a version of a Delta log beside "
    "the table, over the same base files: what Hudi's read-optimised query reads. A sync that "
    "fails does not fail the write: it is reported, and the next one makes up for it.",
    False,
)

DELTA_OPTIONS: Final[tuple[Option[object], ...]] = (DELTA_SYNC,)
"""Every option of this module, in the order of the option table."""

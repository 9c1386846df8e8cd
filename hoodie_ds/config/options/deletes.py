"""The options of a column that marks deletes.

Names are those of Hudi's ``DefaultHoodieRecordPayload``, in which the column began.
"""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.option import TEXT, Option

DELETE_FIELD: Final = Option(
    "hoodie.payload.delete.field",
    TEXT,
    "A column that marks deletes: a row with a certain text there deletes its key. It is fixed at "
    "creation.",
    aliases=("hoodie.record.merge.property.hoodie.payload.delete.field",),
)
DELETE_MARKER: Final = Option(
    "hoodie.payload.delete.marker",
    TEXT,
    "The text that marks deletes in the column of hoodie.payload.delete.field.",
    aliases=("hoodie.record.merge.property.hoodie.payload.delete.marker",),
)

DELETE_OPTIONS: Final[tuple[Option[object], ...]] = (DELETE_FIELD, DELETE_MARKER)
"""In the order of the option table."""

"""Partial updates of a table: in its properties, and in those of a new table.

Hudi keeps the mode as ``hoodie.table.partial.update.mode`` from table version 9 on; before, it
looks at the payload class alone. So in a new table of version 6 or 8 ``IGNORE_DEFAULTS`` is the
payload class that does the same, by event time or by commit time. ``FILL_UNAVAILABLE`` has none
that would fit (Hudi's merges the columns of one product, Debezium for Postgres): such a table has
the properties of version 9, with a payload class that no JVM has, so that none merges its rows
wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.enums import MergeMode, PartialUpdateMode
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.property_reader import PropertyReader
from hoodie_ds.config.table_options import (
    NON_DEFAULTS_PAYLOAD,
    PARTIAL_UPDATE_PAYLOAD,
    TableOptions,
)
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError

DEBEZIUM_UNAVAILABLE: Final = "__debezium_unavailable_value"
"""What Debezium puts where a large value of Postgres did not change and is not known."""


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """How the rows of a table fill what others lack.

    Parameters
    ----------
    mode : PartialUpdateMode
        Which values a row lacks.
    order : MergeMode
        Which row is filled: the one with the greater ordering value (``EVENT_TIME_ORDERING``), or
        the later one (``COMMIT_TIME_ORDERING``).
    payload : str
        The Java class of the table, or that its properties stand for; empty if there is none.
    marker : str
        The value that stands for one that is not known; of ``FILL_UNAVAILABLE``.
    """

    mode: PartialUpdateMode
    order: MergeMode
    payload: str = ""
    marker: str = DEBEZIUM_UNAVAILABLE

    @property
    def name(self) -> str:
        """How messages call it."""
        hudis = self.payload in PAYLOAD_ORDERS
        return self.payload if hudis else f"partial updates, {self.mode.value}"


PAYLOAD_ORDERS: Final = {
    PARTIAL_UPDATE_PAYLOAD: MergeMode.EVENT_TIME_ORDERING,
    NON_DEFAULTS_PAYLOAD: MergeMode.COMMIT_TIME_ORDERING,
}
"""Hudi's payload classes that fill rows, each with which row is filled."""


def read_partial_update(
    reader: PropertyReader, mode: MergeMode, ordering: tuple[str, ...]
) -> PartialUpdate | None:
    """Return the partial updates of a table, None if its rows are not filled.

    A mode that is unknown here is an `UnsupportedTableError`.
    """
    payload = (
        reader.raw.get(keys.PAYLOAD_CLASS) or reader.raw.get(keys.LEGACY_PAYLOAD, "")
    ).strip()
    if keys.PARTIAL_UPDATE_MODE in reader.raw:
        filled = reader.member(keys.PARTIAL_UPDATE_MODE, PartialUpdateMode)
        marker = reader.raw.get(keys.UNAVAILABLE_VALUE) or DEBEZIUM_UNAVAILABLE
        return PartialUpdate(filled, _order(mode, ordering), payload, marker)
    if mode is not MergeMode.CUSTOM or payload not in PAYLOAD_ORDERS:
        return None
    return PartialUpdate(PartialUpdateMode.IGNORE_DEFAULTS, PAYLOAD_ORDERS[payload], payload)


def partial_update_entries(options: WriteOptions) -> dict[str, str] | None:
    """Return the entries of a new table's merge; None if no mode of partial updates is asked for.

    An option that contradicts the mode is an `OptionError`.
    """
    mode = options.partial_update_mode
    if mode is not PartialUpdateMode.FILL_UNAVAILABLE and options.unavailable_value is not None:
        raise OptionError(
            TableOptions.unavailable_value.key,
            options.unavailable_value,
            f"it belongs to {TableOptions.partial_update_mode.key} = FILL_UNAVAILABLE",
        )
    if mode is None:
        return None
    order = _order_asked_for(options, mode)
    ordering = (options.ordering_fields or ()) if order is MergeMode.EVENT_TIME_ORDERING else ()
    entries = {
        keys.MERGE_MODE: MergeMode.CUSTOM.value,
        keys.PAYLOAD_CLASS: next(name for name, of in PAYLOAD_ORDERS.items() if of is order),
        keys.MERGER_STRATEGY: keys.PAYLOAD_STRATEGY,
    }
    if ordering:
        entries[keys.PRECOMBINE_FIELD] = ",".join(ordering)
    if mode is PartialUpdateMode.FILL_UNAVAILABLE:
        entries[keys.PAYLOAD_CLASS] = keys.FILL_UNAVAILABLE_PAYLOAD
        entries[keys.PARTIAL_UPDATE_MODE] = mode.value
        entries[keys.UNAVAILABLE_VALUE] = options.unavailable_value or DEBEZIUM_UNAVAILABLE
    return entries


def _order_asked_for(options: WriteOptions, mode: PartialUpdateMode) -> MergeMode:
    payload = options.payload_class
    if options.merge_hook is not None:
        raise OptionError(
            TableOptions.partial_update_mode.key,
            mode.value,
            "a merge hook takes its place; give one",
        )
    ordering = options.ordering_fields or ()
    order = _order(options.merge_mode, ordering)
    if options.merge_mode is MergeMode.CUSTOM and payload is not None:
        order = PAYLOAD_ORDERS[payload]
        if mode is not PartialUpdateMode.IGNORE_DEFAULTS:
            raise OptionError(
                TableOptions.payload_class.key, payload, f"contradicts {mode.value}; leave it out"
            )
    by_event_time = MergeMode.EVENT_TIME_ORDERING in (order, options.merge_mode)
    if by_event_time and not ordering:
        raise OptionError(
            TableOptions.ordering_fields.key, None, "EVENT_TIME_ORDERING needs an ordering field"
        )
    return order


def _order(mode: MergeMode | None, ordering: tuple[str, ...]) -> MergeMode:
    by_event_time = ordering and mode is not MergeMode.COMMIT_TIME_ORDERING
    return MergeMode.EVENT_TIME_ORDERING if by_event_time else MergeMode.COMMIT_TIME_ORDERING

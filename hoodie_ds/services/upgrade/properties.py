"""Table properties converted between versions, as Hudi's upgrade and downgrade handlers do.

Each step goes from one version to its neighbour (Hudi's ``SevenToEightUpgradeHandler``,
``EightToNineUpgradeHandler`` and the downgrade handlers). The meaning of the table stays the same,
except for the order of rows where Hudi's upgrade changes it: properties that the other version
would read differently are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hoodie_ds.config.enums import KeyGeneratorType, MergeMode, PartialUpdateMode, TableType
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.partial_updates import DEBEZIUM_UNAVAILABLE, PAYLOAD_ORDERS
from hoodie_ds.config.properties.table_properties import TableProperties, is_kept
from hoodie_ds.config.table_options import DEFAULT_PAYLOAD, OVERWRITE_PAYLOAD, PAYLOAD_MODES
from hoodie_ds.errors import UnsupportedTableError

VERSIONS: Final = (6, 8, 9)
"""Table versions that tables of this library have, in order."""

_STRATEGIES: Final = {
    MergeMode.EVENT_TIME_ORDERING: keys.EVENT_TIME_STRATEGY,
    MergeMode.COMMIT_TIME_ORDERING: keys.COMMIT_TIME_STRATEGY,
    MergeMode.CUSTOM: keys.PAYLOAD_STRATEGY,
}
_PAYLOADS: Final = {
    MergeMode.EVENT_TIME_ORDERING: DEFAULT_PAYLOAD,
    MergeMode.COMMIT_TIME_ORDERING: OVERWRITE_PAYLOAD,
}
Entries = dict[str, str | None]
"""Values by key; None for a removed key."""

_MODEL: Final = "org.apache.hudi.common.model."
_MYSQL: Final = _MODEL + "debezium.MySqlDebeziumAvroPayload"
_OF_DEBEZIUM: Final = {
    keys.MERGE_MODE: MergeMode.EVENT_TIME_ORDERING.value,
    keys.DELETE_FIELD: "_change_operation_type",
    keys.DELETE_MARKER: "d",
}
_OF_CHANGES: Final = {
    _MODEL + "AWSDmsAvroPayload": {
        keys.MERGE_MODE: MergeMode.COMMIT_TIME_ORDERING.value,
        keys.DELETE_FIELD: "Op",
        keys.DELETE_MARKER: "D",
    },
    _MYSQL: _OF_DEBEZIUM | {keys.ORDERING_FIELDS: "_event_bin_file,_event_pos"},
    _MODEL + "debezium.PostgresDebeziumAvroPayload": _OF_DEBEZIUM
    | {
        keys.ORDERING_FIELDS: "_event_lsn",
        keys.PARTIAL_UPDATE_MODE: PartialUpdateMode.FILL_UNAVAILABLE.value,
        keys.UNAVAILABLE_VALUE: DEBEZIUM_UNAVAILABLE,
    },
}
"""Payload classes of database changes, and the properties of version 9 that mean the same."""

_MYSQL_ORDER: Final = "_event_seq"
"""Ordering field of MySQL rows before version 9: file and position in one string."""


def translated(properties: TableProperties, to: int) -> TableProperties:
    """Return the properties of a table for another version.

    Raises `UnsupportedTableError` if that version cannot express them.
    """
    properties = _as_hudi_takes_them(properties, to)
    found, there = properties, VERSIONS.index(to)
    while (here := VERSIONS.index(found.version)) != there:
        following = VERSIONS[here + (1 if there > here else -1)]
        entries = _STEPS[found.version, following](found)
        entries[keys.VERSION] = str(following)
        removed = [key for key, value in entries.items() if value is None]
        changes = {key: value for key, value in entries.items() if value is not None}
        found = found.with_changes(changes).without(removed)
    if _meaning(found) != _meaning(properties):
        raise UnsupportedTableError(
            f"table {properties.name!r} would merge or partition its rows otherwise in version "
            f"{to}; it stays in version {properties.version}"
        )
    return found


def keeps_metadata(properties: TableProperties, to: int, enabled: bool | None) -> bool:
    """Whether a change of the version leaves the metadata table as it is.

    Hudi converts it into another layout too; here it is dropped and made again for that.
    """
    stays = min(properties.version, to) > VERSIONS[0]
    return stays and is_kept(properties) and enabled is not False


def is_ordered_anew(found: TableProperties, to: int) -> bool:
    """Whether a version orders rows by event time that were not ordered by it, by Hudi's rule."""
    return _as_hudi_takes_them(found, to).order is not found.order


def _meaning(found: TableProperties) -> tuple[object, ...]:
    """What must be the same in every version."""
    fill = found.partial_update
    by_event_time = found.order is not MergeMode.COMMIT_TIME_ORDERING
    merge = (
        found.order,
        fill and (fill.mode, fill.marker),
        found.ordering_fields if by_event_time else (),
        found.delete_marker,
    )
    return (
        _payload_of_changes(found) or merge,
        found.record_key_fields,
        found.partition_fields,
        found.partition_field_specs,
        found.key_generator,
    )


def _payload_of_changes(found: TableProperties) -> str | None:
    """The payload class of `_OF_CHANGES` that the table has, or that its properties stand for."""
    payload = found.raw.get(keys.PAYLOAD_CLASS, "").strip()
    if payload in _OF_CHANGES:
        return payload
    legacy = found.raw.get(keys.LEGACY_PAYLOAD, "").strip()
    return legacy if _OF_CHANGES.get(legacy, {"": ""}).items() <= found.raw.items() else None


def _as_hudi_takes_them(found: TableProperties, to: int) -> TableProperties:
    """Return properties as Hudi's upgrade from version 6 reads them (its ``upgradeMergeMode``).

    Where a merge-on-read table has an ordering field, version 6 merges rows of log files by it,
    whatever the standard payload class: from version 8 on all of its rows are.
    """
    payload = found.raw.get(keys.PAYLOAD_CLASS, "").strip() or DEFAULT_PAYLOAD
    modes = {found.merge_mode, PAYLOAD_MODES.get(payload, MergeMode.CUSTOM)}
    is_standard = MergeMode.CUSTOM not in modes and found.partial_update is None
    leaves_six = found.version == VERSIONS[0] != to
    is_merged = found.table_type is TableType.MERGE_ON_READ
    if not (leaves_six and is_merged and found.ordering_fields and is_standard):
        return found
    mode = MergeMode.EVENT_TIME_ORDERING.value
    return found.with_changes({keys.PAYLOAD_CLASS: DEFAULT_PAYLOAD, keys.MERGE_MODE: mode})


def _six_to_eight(found: TableProperties) -> Entries:
    mode = found.merge_mode
    return {
        keys.INITIAL_VERSION: "6",
        keys.LAYOUT: "2",
        keys.TIMELINE_PATH: "timeline",
        keys.HISTORY_PATH: "history",
        keys.KEY_GENERATOR_TYPE: found.key_generator.value,
        keys.KEY_GENERATOR_CLASS: found.raw.get(keys.KEY_GENERATOR_CLASS)
        or found.key_generator.java_class,
        keys.MERGE_MODE: mode.value,
        **_payload_entries(found, mode),
        **(_fields(",".join(found.partition_field_specs)) if _is_custom(found) else {}),
        keys.PARTITION_SPECS: None,
    }


def _eight_to_nine(found: TableProperties) -> Entries:
    payload = found.raw.get(keys.PAYLOAD_CLASS, "").strip()
    entries: Entries = {keys.MERGER_STRATEGY: None}
    if found.ordering_fields:
        entries |= {
            keys.ORDERING_FIELDS: ",".join(found.ordering_fields),
            keys.PRECOMBINE_FIELD: None,
        }
    if payload in PAYLOAD_ORDERS:
        entries[keys.MERGE_MODE] = PAYLOAD_ORDERS[payload].value
        entries[keys.PARTIAL_UPDATE_MODE] = PartialUpdateMode.IGNORE_DEFAULTS.value
    is_said = payload in PAYLOAD_MODES or payload in _OF_CHANGES
    if is_said:
        entries |= {keys.LEGACY_PAYLOAD: payload, keys.PAYLOAD_CLASS: None}
        entries |= _OF_CHANGES.get(payload, {})
    if is_said or found.merge_mode is not MergeMode.CUSTOM:
        entries[keys.MERGE_STRATEGY_ID] = None
    return entries


def _nine_to_eight(found: TableProperties) -> Entries:
    legacy = found.raw.get(keys.LEGACY_PAYLOAD, "").strip()
    entries: Entries = {keys.LEGACY_PAYLOAD: None}
    if found.ordering_fields:
        entries |= {
            keys.PRECOMBINE_FIELD: ",".join(found.ordering_fields),
            keys.ORDERING_FIELDS: None,
        }
    if legacy in _OF_CHANGES:
        ordered = {keys.PRECOMBINE_FIELD: _MYSQL_ORDER} if legacy == _MYSQL else {}
        return {
            **dict.fromkeys(_OF_CHANGES[legacy]),
            **entries,
            **ordered,
            keys.MERGE_MODE: MergeMode.CUSTOM.value,
            keys.MERGE_STRATEGY_ID: keys.PAYLOAD_STRATEGY,
            keys.PAYLOAD_CLASS: legacy,
        }
    fill = found.partial_update
    if fill is not None and fill.mode is PartialUpdateMode.IGNORE_DEFAULTS:
        filling = next(name for name, order in PAYLOAD_ORDERS.items() if order is fill.order)
        return entries | {
            keys.PARTIAL_UPDATE_MODE: None,
            keys.MERGE_MODE: MergeMode.CUSTOM.value,
            keys.MERGE_STRATEGY_ID: keys.PAYLOAD_STRATEGY,
            keys.PAYLOAD_CLASS: legacy or filling,
        }
    if found.merge_mode is MergeMode.CUSTOM:
        return entries
    payload = legacy or _PAYLOADS[found.merge_mode]
    strategy = _STRATEGIES[found.merge_mode]
    return entries | {keys.PAYLOAD_CLASS: payload, keys.MERGE_STRATEGY_ID: strategy}


def _eight_to_six(found: TableProperties) -> Entries:
    mode = found.merge_mode
    by_commit_time = mode is MergeMode.COMMIT_TIME_ORDERING
    # Engines that know no merge mode take a table with an ordering field for one by event time.
    ordering = "" if by_commit_time else ",".join(found.ordering_fields)
    specs = ",".join(found.partition_field_specs)
    names = ",".join(found.partition_fields)
    gone = (
        keys.INITIAL_VERSION,
        keys.KEY_GENERATOR_TYPE,
        keys.TIMELINE_PATH,
        keys.HISTORY_PATH,
        keys.ORDERING_FIELDS,
    )
    return {
        **dict.fromkeys(gone),
        keys.LAYOUT: "1",
        keys.KEY_GENERATOR_CLASS: found.key_generator.java_class,
        keys.MERGE_MODE: None,
        **_payload_entries(found, mode),
        keys.MERGE_STRATEGY_ID: None,
        keys.MERGER_STRATEGY: None if by_commit_time else _STRATEGIES[mode],
        keys.PRECOMBINE_FIELD: ordering or None,
        **(_fields(names) | {keys.PARTITION_SPECS: specs} if _is_custom(found) else {}),
    }


def _payload_entries(found: TableProperties, mode: MergeMode) -> Entries:
    """Payload class and merger of a table up to version 8; those of a custom merge stay."""
    payload = found.raw.get(keys.PAYLOAD_CLASS) or _PAYLOADS.get(mode)
    strategy = _STRATEGIES[mode] if payload else None
    return {
        keys.PAYLOAD_CLASS: payload,
        keys.MERGE_STRATEGY_ID: strategy or found.raw.get(keys.MERGE_STRATEGY_ID),
        keys.MERGER_STRATEGY: strategy or found.raw.get(keys.MERGER_STRATEGY),
    }


def _is_custom(found: TableProperties) -> bool:
    generator = found.key_generator is KeyGeneratorType.CUSTOM
    return generator and bool(found.partition_field_specs)


def _fields(fields: str) -> Entries:
    return {keys.PARTITION_FIELDS: fields}


_STEPS: Final[dict[tuple[int, int], Callable[[TableProperties], Entries]]] = {
    (6, 8): _six_to_eight,
    (8, 9): _eight_to_nine,
    (9, 8): _nine_to_eight,
    (8, 6): _eight_to_six,
}

"""Whether writes keep Hudi's metadata table, and the promise of its record index, which stays.

A record index of the whole table maps each record key to one place. Hudi rebuilds it from all files
once it is gone with the metadata table, and fails for good where a key is there twice. So a writer
without the index keeps its promise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Literal

from hoodie_ds.config.enums import IndexType, MergeMode, TableType
from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.index_options import IndexOptions
from hoodie_ds.config.metadata_options import MetadataOptions
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.java_properties import parse_properties
from hoodie_ds.config.properties.table_properties import (
    BLOOM_FILTERS,
    RECORD_INDEX,
    SECONDARY_INDEX,
    TableProperties,
    expression_indexes,
    is_kept,
    is_kept_partition,
    properties_file,
)
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import NotFoundError, OptionError
from hoodie_ds.hints import command
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.table.index_definitions import index_definition, undefine_indexes
from hoodie_ds.table.secondary_index import kept_indexes
from hoodie_ds.table.table import Table, update_properties
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import METADATA_TABLE, PROPERTIES, V1

METADATA_KEYS: Final = (keys.METADATA_PARTITIONS, keys.METADATA_PARTITIONS_INFLIGHT)
"""Properties that say that there is a metadata table."""

FIRST_SECOND: Final = "0" * 14
"""What the times of the delta commits begin with that first fill the partitions."""

_OF_TABLE: Final = (IndexType.RECORD_INDEX, IndexType.GLOBAL_RECORD_LEVEL_INDEX)
_RESTORE: Final = "restore the file, or write the table with Hudi"

Scope = Literal["table", "partition"]
"""Where a record index holds each record key once."""


def has_bloom_filters(properties: TableProperties) -> bool:
    """Whether the metadata table has the bloom filters of base files: then each of them has one."""
    return BLOOM_FILTERS in properties.metadata_partitions


def dropped_indexes(properties: TableProperties, options: MetadataOptions) -> frozenset[str]:
    """Return the indexes of expressions, if writes drop them by some options."""
    stay = options.expression_index or not options.drops
    return frozenset() if stay else expression_indexes(properties)


def refuse_metadata_table(
    table: Table, options: WriteOptions, dropped: Collection[str] = ()
) -> None:
    """Refuse a metadata table that cannot be kept unless ``hoodie.metadata.enable`` is false.

    `dropped` are partitions that the caller drops.
    """
    properties, enabled = table.properties, options.metadata_enable
    if not properties.metadata_partitions:
        return
    if enabled is False:
        if options.metadata.drops:
            return
        raise OptionError(
            FileOptions.metadata_enable.key,
            enabled,
            f"table {properties.name!r} has a metadata table, which this drops, and "
            f"{MetadataOptions.drops.key}=false forbids that; leave one of them out",
        )
    partitions = properties.metadata_partitions
    lost = [name for name in not_kept(table) if name not in dropped]
    if is_kept(properties, dropped) and not lost and _is_there(table.storage):
        return
    unique = alone = ""
    if properties.partition_fields and record_index(table) == "table":
        unique = (
            ", whose record index has each record key once, so writes of this library keep keys "
            "unique in the whole table with an index such as GLOBAL_BLOOM"
        )
    if lost:
        alone = f"{command_to_drop(table, lost)} drops what cannot be kept, or "
    raise OptionError(
        FileOptions.metadata_enable.key,
        enabled,
        f"table {properties.name!r} has a metadata table ({', '.join(partitions)}){unique}; this "
        f"release cannot keep {', '.join(lost or partitions)} up to date: {alone}set the option to "
        "false to drop it, as Hudi does",
    )


def command_to_drop(table: Table, names: Iterable[str]) -> str:
    """Return the command that drops some partitions of a metadata table alone."""
    words = (word for name in names for word in ("--partition", name))
    return command("metadata", "drop", table.storage.root, *words)


def not_kept(table: Table) -> Iterator[str]:
    """Yield the partitions of a metadata table that writes cannot keep.

    Of a record index of the whole table a user's function must not decide the rows. A record of a
    secondary index has no partition, so it needs record keys that are unique in the table.
    """
    partitions = table.properties.metadata_partitions
    yield from (name for name in partitions if not is_kept_partition(name))
    indexes = [n for n in partitions if n == RECORD_INDEX or n.startswith(SECONDARY_INDEX)]
    if not indexes:
        return
    known = {RECORD_INDEX, *(index.partition for index in kept_indexes(table))}
    if record_index(table) == "partition":
        known = {RECORD_INDEX} if table.layout != V1.version else set()
    can_index = can_index_records(table.properties)
    yield from (name for name in indexes if not can_index or name not in known)


def can_index_records(properties: TableProperties) -> bool:
    """Whether no user's function decides which rows of log files are left."""
    is_logged = properties.table_type is TableType.MERGE_ON_READ
    return not (is_logged and properties.order is MergeMode.CUSTOM)


def wanted_record_index(properties: TableProperties, options: WriteOptions) -> Scope | None:
    """Return which record index writers ask for: by its switch, or by their index.

    Raises `OptionError` if Hudi does not know it in the table's version.
    """
    if options.metadata_enable is False or not properties.record_key_fields:
        return None
    switches, kind = options.metadata, options.index_type or properties.index_type
    scope: Scope = "table"
    if switches.record_index or switches.partition_index:
        scope = "partition" if switches.partition_index else "table"
    elif kind is IndexType.RECORD_LEVEL_INDEX and switches.partition_index is None:
        scope = "partition"
    elif kind not in _OF_TABLE or switches.record_index is not None:
        return None
    if scope == "partition" and properties.layout_version == V1.version:
        key, value = MetadataOptions.partition_index.key, "true"
        if not switches.partition_index:
            key, value = IndexOptions.index_type.key, IndexType.RECORD_LEVEL_INDEX.value
        raise OptionError(
            key,
            value,
            f"table {properties.name!r} has version {properties.version}, and there is a record "
            f"index of each partition from version 8 on: set {FileOptions.table_version.key}=9 for "
            f"a new table, or let {MetadataOptions.record_index.key} make one of the whole table",
        )
    return scope


def _is_there(storage: Storage) -> bool:
    """Whether a metadata table has not been lost with its folder."""
    with suppress(NotFoundError):
        storage.read(f"{METADATA_TABLE}/{PROPERTIES}")
        return True
    return False


def record_index(table: Table) -> Scope | None:
    """Where record keys are unique by a record index that Hudi has, or will build again.

    Its definition says whether it covers the whole table or each partition by itself. Hudi keeps
    the definition when it drops the metadata table, as is done here. Releases before 1.1 write
    none, and have indexes of whole tables only: `drop_metadata_table` stores those.
    """
    return _defined(table) or ("table" if _is_indexed_undefined(table.properties) else None)


def drop_metadata_table(table: Table, now_ms: int) -> Table:
    """Switch a table's metadata table off, as Hudi does for a writer that does not maintain one."""
    return drop_partitions(table, table.properties.metadata_partitions, now_ms)


def drop_partitions(table: Table, dropped: Collection[str], now_ms: int) -> Table:
    """Drop partitions of a table's metadata table; it goes with the last one.

    First the property, then the files: a reader that still sees the property fails, rather than
    trust a metadata table that is out of date. Definitions stay, by which Hudi makes indexes again;
    but its queries fail where an index of an expression has a definition alone.
    """
    if not {*table.properties.metadata_partitions}.issubset(dropped):
        undefine_indexes(table, expression_indexes(table.properties).intersection(dropped))
    changed, removed = dict[str, str](), list[str]()
    if RECORD_INDEX in dropped and _defined(table) is None:
        changed[keys.KEYS_WERE_INDEXED] = "true"
    for key in METADATA_KEYS:
        names = table.properties.raw.get(key, "").split(",")
        left = [name for name in map(str.strip, names) if name and name not in dropped]
        if left:
            changed[key] = ",".join(left)
        else:
            removed.append(key)
    if keys.METADATA_PARTITIONS in removed and (number := _first_free(table)):
        changed[keys.METADATA_BEGINS] = str(number)
    without = update_properties(table, changed, removed, now_ms)
    gone = [f"{METADATA_TABLE}/{name}" for name in dropped]
    for folder in gone if without.properties.metadata_partitions else [METADATA_TABLE]:
        table.storage.delete(folder)
    return without


def change_version_of_metadata(table: Table, to: int, now_ms: int) -> None:
    """Have the metadata table's own properties name another table version."""
    path = f"{METADATA_TABLE}/{PROPERTIES}"
    entries = parse_properties(table.storage.read(path), path)
    table.storage.replace(path, properties_file({**entries, keys.VERSION: str(to)}, now_ms))


def _first_free(table: Table) -> int:
    """The first number that no delta commit has that fills a partition; 0 if none has one.

    In layout 2 the completion time tells those of two metadata tables apart.
    """
    if table.layout != V1.version:
        return 0
    own = load_timeline(SubfolderStorage(table.storage, METADATA_TABLE), table.layout)
    numbers = [int(i.time[:17]) for i in own.completed if i.time.startswith(FIRST_SECOND)]
    return max(numbers, default=-1) + 1


def _is_indexed_undefined(properties: TableProperties) -> bool:
    has_index = RECORD_INDEX in properties.metadata_partitions
    return has_index or properties.raw.get(keys.KEYS_WERE_INDEXED) == "true"


def _defined(table: Table) -> Scope | None:
    """Return what Hudi's definition of the record index says; None if there is none."""
    unknown = ", without which it is not known whether a record key may be in two partitions"
    return index_definition(table, RECORD_INDEX, _scope, _RESTORE, unknown)


def _scope(definition: Mapping[str, Any]) -> Scope:
    is_partitioned = str(definition["indexOptions"].get("isPartitioned")).lower() == "true"
    return "partition" if is_partitioned else "table"

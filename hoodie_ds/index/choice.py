"""Chooses the index of a table: what options or the table say, else by the names of file groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.index_options import IndexOptions
from hoodie_ds.config.key_generation import lacking_stored_keys
from hoodie_ds.config.metadata_options import MetadataOptions
from hoodie_ds.config.properties.table_properties import RECORD_INDEX, TableProperties
from hoodie_ds.config.table_options import TableOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, UnsupportedTableError
from hoodie_ds.formats.parquet.bloom_filter import BloomParams
from hoodie_ds.index.bucket_index import BucketIndex
from hoodie_ds.index.lookup_indexes import BloomIndex, RecordIndex, SimpleIndex, StateIndex
from hoodie_ds.index.protocol import Index, LookupIndex
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import bucket_of
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.hashing_config import load_hashing_config
from hoodie_ds.table.metadata_table import (
    Scope,
    can_index_records,
    command_to_drop,
    has_bloom_filters,
    record_index,
    wanted_record_index,
)
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.paths import BUCKET_INDEX, HASHING_RINGS
from hoodie_ds.timeline.timeline import Timeline

_LOOKUPS: Final[dict[IndexType, type[LookupIndex]]] = {
    IndexType.BLOOM: BloomIndex,
    IndexType.SIMPLE: SimpleIndex,
    IndexType.FLINK_STATE: StateIndex,
    IndexType.GLOBAL_BLOOM: BloomIndex,
    IndexType.GLOBAL_SIMPLE: SimpleIndex,
    IndexType.RECORD_INDEX: RecordIndex,
    IndexType.RECORD_LEVEL_INDEX: RecordIndex,
    IndexType.GLOBAL_RECORD_LEVEL_INDEX: RecordIndex,
}
"""The indexes that look keys up."""
_BUCKETS_EXPECTED: Final = 10_000
"""A random id seldom begins like a bucket's below this number: one time in half a million."""
_EMPTY_COMMITS: Final = 20


def choose_index(
    properties: TableProperties, options: WriteOptions, table: Table | None, timeline: Timeline
) -> Index:
    """Choose the index of a table with record keys; `table` is None if it does not exist yet.

    `UnsupportedTableError` says that the table's file groups do not fit the index.
    """
    groups = _newest_groups(table, timeline) if table is not None else []
    stated = options.index_type or properties.index_type
    stored = None
    if table is not None and stated in (None, IndexType.BUCKET):
        stored = load_hashing_config(table.storage, timeline)
    known = stored is not None or (properties.num_buckets or options.num_buckets) is not None
    kind = stated or _by_names(known, groups, properties.populate_meta_fields)
    wanted = wanted_record_index(properties, options)
    if wanted and not can_index_records(properties):
        raise OptionError(
            TableOptions.merge_mode.key,
            properties.order.value,
            "which rows of log files are left is decided by a function then, so there can be no "
            "record index; let the table have the type COPY_ON_WRITE or another index",
        )
    stored_scope = None if table is None else record_index(table)
    if table is not None and wanted not in (None, stored_scope):
        _refuse_other_scope(table, wanted)
    if "table" in (wanted, stored_scope) and properties.partition_fields:
        kind = _keeping_keys_unique(kind, properties, options)
    if kind is IndexType.BUCKET:
        return BucketIndex.of(properties, options, stored, groups)
    if kind not in _LOOKUPS:
        names = ", ".join(found.value for found in (IndexType.BUCKET, *_LOOKUPS))
        raise OptionError(IndexOptions.index_type.key, kind.value, f"this release has {names}")
    _check_has_no_buckets(kind, properties, options, table, groups)
    if not properties.populate_meta_fields:
        generator, fields = properties.key_generator, properties.record_key_fields
        for lacking in lacking_stored_keys(generator, fields, kind):
            raise OptionError(
                IndexOptions.index_type.key,
                kind.value,
                f"a table with virtual keys cannot have {lacking}",
            )
    return _LOOKUPS[kind].of(kind, properties, options)


def _refuse_other_scope(table: Table, wanted: Scope | None) -> None:
    """Refuse options that ask for another record index than the metadata table has."""
    if RECORD_INDEX not in table.properties.metadata_partitions:
        return
    has, option = "of each partition", MetadataOptions.record_index
    if wanted == "partition":
        has, option = "of the whole table", MetadataOptions.partition_index
    raise OptionError(
        option.key,
        True,
        f"the metadata table of table {table.properties.name!r} has a record index {has}, and "
        "there can be one alone; leave the option out, or drop it first with "
        f"{command_to_drop(table, [RECORD_INDEX])}",
    )


def _keeping_keys_unique(
    kind: IndexType, properties: TableProperties, options: WriteOptions
) -> IndexType:
    """Return the index that keeps record keys unique in a table that has a record index."""
    if keys_are_global(kind, properties, options):
        return kind
    unique = IndexType.GLOBAL_BLOOM if properties.populate_meta_fields else IndexType.GLOBAL_SIMPLE
    why = (
        f"the record index (record_index) of table {properties.name!r} cannot be built again once "
        "a record key is in two partitions"
    )
    if kind is IndexType.BUCKET:
        raise UnsupportedTableError(
            f"{why}, and the index BUCKET keeps keys unique in each partition only; begin a new "
            f"table with {IndexOptions.index_type.key}={IndexType.RECORD_INDEX.value}, or let Hudi "
            "drop the record index of an old one first (DROP INDEX record_index)"
        )
    if options.index_type is not None:
        raise OptionError(
            IndexOptions.index_type.key, kind.value, f"{why}; leave it out or say {unique.value}"
        )
    return unique


def _check_has_no_buckets(
    kind: IndexType,
    properties: TableProperties,
    options: WriteOptions,
    table: Table | None,
    groups: Sequence[FileGroupId],
) -> None:
    """Refuse an index that looks keys up if other writers use buckets."""
    if properties.index_type is IndexType.BUCKET or are_buckets(groups):
        raise UnsupportedTableError(
            f"the file groups of table {properties.name!r} are named after buckets, so every "
            f"writer has to use the index BUCKET and not {kind.value}"
        )
    if table is not None and has_hashing_rings(table.storage):
        raise UnsupportedTableError(
            f"table {properties.name!r} has buckets that Hudi splits and merges "
            "(hoodie.index.bucket.engine = CONSISTENT_HASHING), and this release cannot tell "
            "which one a key belongs to; write it with Hudi"
        )
    if options.bucket_rules is not None:
        raise OptionError(
            IndexOptions.bucket_rules.key,
            str(options.bucket_rules),
            f"the index {kind.value} has no buckets",
        )


def has_hashing_rings(storage: Storage) -> bool:
    """Whether a table has buckets of consistent hashing."""
    folders = storage.list(BUCKET_INDEX, folders=True)
    return any(folder.path == HASHING_RINGS for folder in folders)


def keys_are_global(kind: IndexType, properties: TableProperties, options: WriteOptions) -> bool:
    """Whether an index keeps record keys unique in the whole table, not only in each partition."""
    return kind in _LOOKUPS and _LOOKUPS[kind].of(kind, properties, options).is_global


def has_bloom_filter(
    group: FileGroupId, properties: TableProperties, options: WriteOptions
) -> bool:
    """Whether the base files of a group need a bloom filter.

    They do wherever keys may be looked up, so not in known buckets, unless the metadata table has
    the filters of all base files.
    """
    stated = options.index_type or properties.index_type
    stores_keys = properties.record_key_fields and properties.populate_meta_fields
    if not stores_keys or has_bloom_filters(properties):
        return bool(stores_keys)
    if stated is IndexType.BUCKET:
        return False
    return stated is not None or not are_buckets([group])


def bloom_params(options: WriteOptions) -> BloomParams:
    """Return the parameters of the bloom filters in base files."""
    return BloomParams(
        options.bloom_num_entries,
        options.bloom_false_positives,
        options.bloom_filter_type,
        options.bloom_max_entries,
    )


def _by_names(count_known: bool, groups: Sequence[FileGroupId], stores_keys: bool) -> IndexType:
    if are_buckets(groups) if groups else count_known:
        return IndexType.BUCKET
    return IndexType.BLOOM if stores_keys else IndexType.SIMPLE


def are_buckets(groups: Sequence[FileGroupId]) -> bool:
    """Whether file groups are named after buckets; not if there are none."""
    buckets = [bucket_of(group.file_id) for group in groups]
    return bool(buckets) and all(b is not None and b < _BUCKETS_EXPECTED for b in buckets)


def _newest_groups(table: Table, timeline: Timeline) -> list[FileGroupId]:
    """File groups of the newest commit that wrote any; all of them after many empty commits."""
    for instant in islice(timeline.commits_backwards(), _EMPTY_COMMITS):
        stats = file_changes(table.storage, instant).added.values()
        if stats:
            return [FileGroupId(stat.partition_path, stat.file_id) for stat in stats]
    view = FileSystemView(table.storage, timeline)
    return [found.group for found in view.slices_among(view.data_files())]

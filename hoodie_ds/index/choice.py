"""Which index a write uses: what the user or the table says, else what file groups are named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from hoodie_ds.config.enums import IndexType
from hoodie_ds.config.key_generation import lacking_stored_keys
from hoodie_ds.config.options.index import INDEX_TYPE, PARTITION_BUCKETS
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, UnsupportedTableError
from hoodie_ds.formats.parquet.bloom_filter import BloomParams
from hoodie_ds.index.bucket import bucket_of
from hoodie_ds.index.bucket_layout import BucketLayout
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.hashing_config import load_hashing_config
from hoodie_ds.table.metadata_table import record_index
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import BUCKET_INDEX, HASHING_RINGS
from hoodie_ds.timeline.timeline import Timeline

_GLOBAL: Final = (IndexType.GLOBAL_BLOOM, IndexType.GLOBAL_SIMPLE)
_LOOK_UP: Final = (IndexType.BLOOM, IndexType.SIMPLE, IndexType.FLINK_STATE, *_GLOBAL)
_BUCKETS_EXPECTED: Final = 10_000
"""A random id seldom begins like a bucket's below this number: one time in half a million."""
_EMPTY_COMMITS: Final = 20


def choose_index(
    properties: TableProperties, options: WriteOptions, table: Table | None, timeline: Timeline
) -> tuple[IndexType, BucketLayout | None]:
    """Choose the index of a table with record keys.

    Parameters
    ----------
    properties : TableProperties
        Of the table, or of the one to be created.
    options : WriteOptions
        What the user said.
    table : Table or None
        The table; None if it is to be created.
    timeline : Timeline
        Its commits.

    Returns
    -------
    IndexType
        BUCKET, or one that looks keys up.
    BucketLayout or None
        The buckets of a bucket index.

    Raises
    ------
    OptionError
        The index is not supported, or the number of buckets is not known.
    UnsupportedTableError
        The table's file groups do not fit the index.
    """
    groups = _newest_groups(table, timeline) if table is not None else []
    stated = options.index_type or properties.index_type
    rules = None
    if table is not None and stated in (None, IndexType.BUCKET):
        rules = load_hashing_config(table.storage, timeline)
    known = rules is not None or (properties.num_buckets or options.num_buckets) is not None
    index = stated or _by_names(known, groups, properties.populate_meta_fields)
    if table is not None and properties.partition_fields and record_index(table) == "table":
        index = _keeping_keys_unique(index, properties, options)
    if index is IndexType.BUCKET:
        layout = BucketLayout.of(properties, options, rules)
        for group in groups:
            layout.check_name(group)
        return index, layout
    if index not in _LOOK_UP:
        raise OptionError(
            INDEX_TYPE.key,
            index.value,
            "this release has BUCKET, BLOOM, SIMPLE, FLINK_STATE, GLOBAL_BLOOM and GLOBAL_SIMPLE",
        )
    _check_has_no_buckets(index, properties, options, table, groups)
    if not properties.populate_meta_fields:
        kind, fields = properties.key_generator, properties.record_key_fields
        for lacking in lacking_stored_keys(kind, fields, index):
            raise OptionError(
                INDEX_TYPE.key, index.value, f"a table with virtual keys cannot have {lacking}"
            )
    return index, None


def _keeping_keys_unique(
    index: IndexType, properties: TableProperties, options: WriteOptions
) -> IndexType:
    """Return the index by which a record key stays unique in a table that Hudi indexes by key."""
    if keys_are_global(index, properties, options):
        return index
    unique = IndexType.GLOBAL_BLOOM if properties.populate_meta_fields else IndexType.GLOBAL_SIMPLE
    why = (
        f"table {properties.name!r} has a record index of Hudi's (record_index), which cannot be "
        "built again once a record key is in two partitions"
    )
    if index is IndexType.BUCKET:
        raise UnsupportedTableError(
            f"{why}, and the index BUCKET keeps keys unique in each partition only; write it with "
            "Hudi, or let Hudi drop the record index first (DROP INDEX record_index)"
        )
    if options.index_type is not None:
        raise OptionError(INDEX_TYPE.key, index.value, f"{why}; leave it out or say {unique.value}")
    return unique


def _check_has_no_buckets(
    index: IndexType,
    properties: TableProperties,
    options: WriteOptions,
    table: Table | None,
    groups: Sequence[FileGroupId],
) -> None:
    """Refuse to look keys up where other writers go by buckets."""
    if properties.index_type is IndexType.BUCKET or _are_buckets(groups):
        raise UnsupportedTableError(
            f"the file groups of table {properties.name!r} are named after buckets, so every "
            f"writer has to use the index BUCKET and not {index.value}"
        )
    if table is not None and _has_hashing_rings(table.storage):
        raise UnsupportedTableError(
            f"table {properties.name!r} has buckets that Hudi splits and merges "
            "(hoodie.index.bucket.engine = CONSISTENT_HASHING), and this release cannot tell "
            "which one a key belongs to; write it with Hudi"
        )
    if options.bucket_rules is not None:
        raise OptionError(
            PARTITION_BUCKETS.key,
            str(options.bucket_rules),
            f"the index {index.value} has no buckets",
        )


def _has_hashing_rings(storage: Storage) -> bool:
    folders = storage.list(BUCKET_INDEX, folders=True)
    return any(folder.path == HASHING_RINGS for folder in folders)


def keys_are_global(index: IndexType, properties: TableProperties, options: WriteOptions) -> bool:
    """Whether an index keeps record keys unique over several partitions, not only in each."""
    by_state = index is IndexType.FLINK_STATE and options.state_is_global
    return bool(properties.partition_fields) and (index in _GLOBAL or by_state)


def has_bloom_filter(
    group: FileGroupId, properties: TableProperties, options: WriteOptions
) -> bool:
    """Whether the base files of a group of a table are to have a bloom filter.

    So they are wherever keys may be looked up: of buckets that are known as such, there is no need.
    """
    stated = options.index_type or properties.index_type
    stores_keys = properties.record_key_fields and properties.populate_meta_fields
    if not stores_keys or stated is IndexType.BUCKET:
        return False
    return stated is not None or not _are_buckets([group])


def bloom_params(options: WriteOptions) -> BloomParams:
    """Return how the bloom filters in base files are made."""
    return BloomParams(
        options.bloom_num_entries,
        options.bloom_false_positives,
        options.bloom_filter_type,
        options.bloom_max_entries,
    )


def _by_names(count_known: bool, groups: Sequence[FileGroupId], stores_keys: bool) -> IndexType:
    if _are_buckets(groups) if groups else count_known:
        return IndexType.BUCKET
    return IndexType.BLOOM if stores_keys else IndexType.SIMPLE


def _are_buckets(groups: Sequence[FileGroupId]) -> bool:
    buckets = [bucket_of(group.file_id) for group in groups]
    return bool(buckets) and all(b is not None and b < _BUCKETS_EXPECTED for b in buckets)


def _newest_groups(table: Table, timeline: Timeline) -> list[FileGroupId]:
    """File groups of the newest commit that wrote any; all, where many have written none."""
    for instant in islice(timeline.commits_backwards(), _EMPTY_COMMITS):
        stats = read_commit(table.storage, instant).stats
        if stats:
            return [FileGroupId(stat.partition_path, stat.file_id) for stat in stats]
    view = FileSystemView(table.storage, timeline)
    return [found.group for found in view.slices_among(view.data_files())]

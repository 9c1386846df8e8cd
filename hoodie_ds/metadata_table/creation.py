"""Making partitions of a metadata table, from the files that a table has.

The property that names a partition comes last, so nobody reads what a dead process left, and the
next one begins that partition anew. Names and bytes are those of Hudi's first delta commits: each
file group begins with a log file that deletes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import as_numpy, one_chunk
from hoodie_ds.config.metadata_options import MetadataOptions
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.table_properties import (
    BLOOM_FILTERS,
    RECORD_INDEX,
    SECONDARY_INDEX,
    TableProperties,
    properties_file,
)
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, TimelineError, UnsupportedTableError
from hoodie_ds.metadata_table.bloom_records import stored_filters
from hoodie_ds.metadata_table.column_index import ColumnIndex, check_named, define_columns
from hoodie_ds.metadata_table.column_records import file_statistics, partition_statistics
from hoodie_ds.metadata_table.compaction import (
    ATTEMPT,
    base_file,
    put_first_log,
    put_once,
    put_pending,
)
from hoodie_ds.metadata_table.file_ranges import stored_ranges
from hoodie_ds.metadata_table.file_records import listing_records
from hoodie_ds.metadata_table.keys_of_rows import KEY, RECORD, KeysOfRows
from hoodie_ds.metadata_table.payload import Record, encode_record
from hoodie_ds.metadata_table.record_changes import stored_places
from hoodie_ds.metadata_table.record_index import check_indexable, group_of
from hoodie_ds.metadata_table.record_keys import file_groups_of, file_id, folder_of, index_of
from hoodie_ds.metadata_table.record_schema import record_schema
from hoodie_ds.metadata_table.statistics import COLUMN_STATS, PARTITION_STATS
from hoodie_ds.metadata_table.stored import EXTENSION, FILES_PARTITION, LISTED_UNTIL
from hoodie_ds.metadata_table.stored_records import REBUILD, forget_files
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.table.file_name import BaseFileName, CdcFileName, LogFileName, written_by
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.index_definitions import define_index
from hoodie_ds.table.metadata_table import (
    Scope,
    dropped_indexes,
    record_index,
    wanted_record_index,
)
from hoodie_ds.table.table import Table, check_unchanged, update_properties
from hoodie_ds.table.table_schema import declared_avro, numbered_columns
from hoodie_ds.timeline.bodies.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_ds.timeline.file_changes import forget_instants
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import next_time
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import (
    METADATA_TABLE,
    PARTITION_METAFILE,
    PROPERTIES,
    V1,
    in_partition,
    instant_path,
)
from hoodie_ds.timeline.timeline import Timeline

MADE: Final = (FILES_PARTITION, COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX, PARTITION_STATS)
"""Partitions that can be made, in Hudi's order."""
_NEEDED: Final = {PARTITION_STATS: COLUMN_STATS}
"""Partitions that Hudi has only beside another one; secondary indexes need the record index."""
_FIRST: Final = {1: 10, 2: 0}
"""Number of the first delta commit, by layout; its time is nothing else."""
_KEYS_IN_A_GROUP: Final = (1 << 30) // 48 // 2
"""Record keys for each file group of a record index, as Hudi estimates: it may yet double."""
_SAME: Final = (keys.VERSION, keys.INITIAL_VERSION, keys.LAYOUT)
"""Properties that are those of the table."""
_OWN: Final = {
    keys.TYPE: "MERGE_ON_READ",
    keys.BASE_FORMAT: "HFILE",
    keys.RECORD_KEYS: "key",
    keys.KEY_GENERATOR_TYPE: "HOODIE_TABLE_METADATA",
    keys.POPULATE_META_FIELDS: "false",
    keys.DROP_PARTITION_COLUMNS: "false",
    keys.PAYLOAD_CLASS: "org.apache.hudi.metadata.HoodieMetadataPayload",
    keys.MERGE_STRATEGY_ID: "00000000-0000-0000-0000-000000000000",
    keys.TIMELINE_PATH: "timeline",
    keys.HISTORY_PATH: "history",
}


def wanted_partitions(properties: TableProperties, given: WriteOptions) -> tuple[str, ...]:
    """Return the partitions that a metadata table is to have by some options, as in Hudi."""
    options = given.metadata
    for option, is_on in (
        (MetadataOptions.record_index, options.record_index),
        (MetadataOptions.partition_index, options.partition_index),
    ):
        if is_on and not properties.record_key_fields:
            raise OptionError(option.key, True, "the table has no record key fields")
    has_stats = options.column_stats or COLUMN_STATS in properties.metadata_partitions
    if options.partition_stats and not has_stats:
        raise OptionError(
            MetadataOptions.partition_stats.key,
            True,
            f"statistics of partitions need those of files; set {MetadataOptions.column_stats.key} "
            "to true too",
        )
    of_partitions = options.partition_stats
    if of_partitions is None:
        of_partitions = options.column_stats
    switches = {
        FILES_PARTITION: True,
        COLUMN_STATS: options.column_stats,
        BLOOM_FILTERS: options.bloom_filters,
        RECORD_INDEX: wanted_record_index(properties, given) is not None,
        PARTITION_STATS: of_partitions and _has_partition_stats(properties),
    }
    return tuple(name for name in MADE if switches[name])


def _has_partition_stats(properties: TableProperties) -> bool:
    """Whether Hudi makes statistics of a table's partitions."""
    return bool(properties.partition_fields) and properties.layout_version != V1.version


def switched_off(table: Table, options: MetadataOptions) -> frozenset[str]:
    """Return those partitions of a metadata table that it is not to have by some options."""
    of_records = options.record_index
    if options.partition_index != of_records and record_index(table) == "partition":
        of_records = options.partition_index
    switches = {
        COLUMN_STATS: options.column_stats,
        BLOOM_FILTERS: options.bloom_filters,
        RECORD_INDEX: of_records,
        PARTITION_STATS: options.partition_stats,
    }
    off = [name for name, on in switches.items() if on is False and options.drops]
    off += dropped_indexes(table.properties, options)
    return frozenset(with_dependents(off, table.properties.metadata_partitions))


def left_partitions(table: Table, given: WriteOptions) -> frozenset[str]:
    """Return the partitions that a write by some options leaves of those of a metadata table."""
    if given.metadata_enable is False:
        return frozenset()
    return frozenset(table.properties.metadata_partitions) - switched_off(table, given.metadata)


def with_dependents(names: Collection[str], there: Iterable[str]) -> Iterator[str]:
    """Yield those of the partitions there are that have some names, or that need one of these."""
    for name in there:
        is_secondary = name.startswith(SECONDARY_INDEX)
        needed = RECORD_INDEX if is_secondary else _NEEDED.get(name)
        if name in names or needed in names:
            yield name


def create_partitions(
    table: Table,
    timeline: Timeline,
    wanted: Collection[str],
    now_ms: int,
    options: WriteOptions,
) -> Table:
    """Make those of some partitions that are missing, while nothing is at work on the table.

    Statistics are made once the table has columns. Raises `UnsupportedTableError` if a record index
    would have a record key twice, `TimelineError` if the table has changed meanwhile, and as
    `check_named`.
    """
    there = table.properties.metadata_partitions
    missing = [name for name in MADE if name in wanted and name not in there]
    check_named(table, numbered_columns(table, timeline), missing)
    if not table.properties.metadata_partitions:
        table.storage.delete(METADATA_TABLE)
        storage = SubfolderStorage(table.storage, METADATA_TABLE)
        put_once(storage, PROPERTIES, _properties(table.properties, now_ms))
        forget_files()
        forget_instants(storage)  # those that begin a metadata table always have the same times
    sizes = _committed(FileSystemView(table.storage, timeline)) if missing else {}
    for name in missing:
        table = _created(table, timeline, name, now_ms, options, sizes)
    return table


def _created(
    table: Table,
    timeline: Timeline,
    name: str,
    now_ms: int,
    options: WriteOptions,
    sizes: Mapping[str, int],
) -> Table:
    """Make a partition of files with these sizes; the table is listed once for all partitions."""
    schema = declared_avro(table, timeline)
    if name in (COLUMN_STATS, PARTITION_STATS) and schema is None:
        return table
    if name == COLUMN_STATS and schema is not None:
        table = define_columns(table, schema, options.metadata.columns, now_ms)
    storage = SubfolderStorage(table.storage, METADATA_TABLE)
    storage.delete(name)
    done = _next_instant(storage, table)
    depth = f"commitTime={done.time}\npartitionDepth=1\n"
    put_once(storage, in_partition(name, PARTITION_METAFILE), depth.encode())
    scope = wanted_record_index(table.properties, options) or record_index(table) or "table"
    stats: list[WriteStat] = []
    for index in _indexes(table, sizes) if (name, scope) == (RECORD_INDEX, "partition") else [name]:
        groups = _content(table, timeline, index, schema or "", sizes, options.metadata)
        for number, (found, values) in enumerate(groups):
            stats += _put_group(storage, index, number, done.time, found, values)
    extra = {SCHEMA_KEY: record_schema(has_meta_fields=False)}
    if table.layout == V1.version:
        pending = (instant.time for instant in timeline.pending)
        extra[LISTED_UNTIL] = ",".join([timeline.latest_time or "", *pending])
    body = CommitMetadata(tuple(stats), "BULK_INSERT_PREPPED", extra).to_bytes(table.layout)
    _check_as_before(table, timeline)
    put_pending(storage, done)
    utc = table.properties.timeline_in_utc
    ended = "" if table.layout == V1.version else next_time(now_ms, utc, timeline.latest_time)
    put_once(storage, instant_path(done.completed(ended)), body)
    _check_as_before(table, timeline)
    if name == RECORD_INDEX:
        table = define_index(table, RECORD_INDEX, _definition(scope), REBUILD, now_ms)
    names = sorted({*table.properties.metadata_partitions, name})
    changed = {keys.METADATA_PARTITIONS: ",".join(names)}
    if (name, scope) == (RECORD_INDEX, "partition"):
        changed[keys.METADATA_INDEX_GROUPS] = str(options.metadata.partition_index_groups)
    return update_properties(table, changed, (), now_ms)


def _definition(scope: Scope) -> Mapping[str, object]:
    """Hudi's definition of a record index."""
    return {
        "indexName": RECORD_INDEX,
        "indexType": RECORD_INDEX,
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {"isPartitioned": str(scope == "partition").lower()},
        "version": "V1",
    }


def _next_instant(storage: Storage, table: Table) -> Instant:
    """The first delta commit that nobody has completed; what began it did not count."""
    layout, begins = table.layout, table.properties.raw.get(keys.METADATA_BEGINS, "")
    done = {instant.time for instant in load_timeline(storage, layout).completed}
    is_second = layout == V1.version and begins.isdecimal()  # it may be of before an upgrade
    number = int(begins) if is_second else _FIRST[layout]
    while f"{number:017}" in done:
        number += 1
    return Instant(f"{number:017}", Action.DELTA_COMMIT, State.COMPLETED, layout=layout)


def _check_as_before(table: Table, timeline: Timeline) -> None:
    """Refuse to continue if what is made lacks what others have written meanwhile."""
    check_unchanged(table)
    if table.load_timeline().completed != timeline.completed:
        raise TimelineError(
            f"{table.storage.root}: others have changed the table while a partition of its "
            "metadata table was made, which is left out; run it again"
        )


def _content(
    table: Table,
    timeline: Timeline,
    name: str,
    schema: str,
    sizes: Mapping[str, int],
    options: MetadataOptions,
) -> Iterator[tuple[pa.Array, Iterable[bytes]]]:
    """Yield the sorted keys (string) of each file group of a partition, and their values."""
    if folder_of(name) == RECORD_INDEX:
        bounds = options.record_index_groups, options.record_index_most
        if name != RECORD_INDEX:
            bounds = options.partition_index_groups, options.partition_index_most
        return _places(table, timeline, name, *bounds)
    if name == FILES_PARTITION:
        folders = {path.rpartition("/")[0] for path in sizes}
        return _grouped(listing_records(sizes, folders).items(), 1)
    if name == BLOOM_FILTERS:
        newest = timeline.commits[-1].time if timeline.commits else ""
        filters = stored_filters(table.storage, newest, sizes)
        return _grouped(filters.items(), options.bloom_filter_groups)
    of_files = name == COLUMN_STATS
    count = options.column_stats_groups if of_files else options.partition_stats_groups
    return _grouped(_statistics(table, name, schema, sizes), count)


def _indexes(table: Table, paths: Iterable[str]) -> list[str]:
    """The record indexes of all partitions that have files at some paths."""
    folders = sorted({path.rpartition("/")[0] for path in paths})
    for folder in folders:
        check_indexable(table.storage.root, folder)
    return [index_of(folder) for folder in folders]


def _grouped(
    records: Iterable[tuple[str, Record]], count: int
) -> Iterator[tuple[pa.Array, Iterable[bytes]]]:
    """The `_content` of records, which are no more than the table has files."""
    values = {key: encode_record(record) for key, record in sorted(records)}
    found = pa.array(values, pa.string())
    numbers = file_groups_of(found, count)
    for number in range(count):
        keys_here = found.filter(pa.array(numbers == number))
        yield keys_here, map(values.__getitem__, keys_here.to_pylist())


def _places(
    table: Table, timeline: Timeline, index: str, least: int, most: int
) -> Iterator[tuple[pa.Array, Iterable[bytes]]]:
    """The `_content` of a record index; a key that is in two file groups is refused."""
    rows = KeysOfRows.of(stored_places(index, table, timeline))
    values = [*map(encode_record, rows.records)]
    count = max(min(rows.num_keys // _KEYS_IN_A_GROUP, most), least)
    for number in range(count):
        here = rows.of_group(number, count).sort_by([(KEY, "ascending"), (RECORD, "ascending")])
        found, at = one_chunk(here.column(KEY)), as_numpy(here.column(RECORD))
        again = np.flatnonzero(as_numpy(pc.equal(found[1:], found[:-1]))) + 1
        for second in again[at[again] != at[again - 1]][:1]:
            places = (str(group_of(rows.records[at[one]])) for one in (second - 1, second))
            raise UnsupportedTableError(
                f"{table.storage.root}: record key {found[second].as_py()!r} is in "
                f"{' and '.join(places)}, and a record index has one place of a key; writes with "
                f"{MetadataOptions.record_index.key}=false go on without the index, such as one "
                "that deletes one of the rows"
            )
        kept = np.delete(np.arange(len(found)), again)
        yield found.take(pa.array(kept)), (values[one] for one in at[kept])


def _statistics(
    table: Table, name: str, schema: str, paths: Iterable[str]
) -> Iterator[tuple[str, Record]]:
    """The statistics of all files, or of all in each partition: a rollback may show older ones."""
    index = ColumnIndex.of(table, schema)
    folders: dict[str, list[str]] = {}
    for path in sorted(paths):
        if CdcFileName.parse(path.rpartition("/")[2]) is None:
            folders.setdefault(path.rpartition("/")[0], []).append(path)
    for folder, files in folders.items():
        if name == PARTITION_STATS:
            ranges = (stored_ranges(table, path, schema, index.defined) for path in files)
            yield from partition_statistics(folder, ranges, {}, index.version).items()
            continue
        for path in files:
            known = stored_ranges(table, path, schema, index.of_files)
            file = path.rpartition("/")[2]
            yield from file_statistics(folder, file, known, index.version).items()


def _put_group(
    storage: Storage,
    partition: str,
    number: int,
    time: str,
    found: pa.Array,
    values: Iterable[bytes],
) -> Iterator[WriteStat]:
    """Put a file group; yield what was written, if it has keys."""
    put_first_log(storage, partition, number, time)
    if not len(found):
        return
    group, folder = file_id(partition, number), folder_of(partition)
    path = in_partition(folder, str(BaseFileName(group, ATTEMPT, time, EXTENSION)))
    size = len(put_once(storage, path, base_file(found, values)))
    yield WriteStat(
        group,
        path,
        folder,
        num_writes=len(found),
        num_inserts=len(found),
        total_write_bytes=size,
        file_size_bytes=size,
    )


def _committed(view: FileSystemView) -> dict[str, int]:
    """Sizes of files by path, without those of instants that do not count: they may be deleted."""
    return {
        status.path: status.size
        for status in view.data_files()
        if _counts(view, status.path.rpartition("/")[2])
    }


def _counts(view: FileSystemView, name: str) -> bool:
    log = LogFileName.parse(name)
    if log is not None and view.timeline.layout == V1.version:
        return True  # it may have blocks of several instants
    written = log.base_instant if log is not None else written_by(name)
    return written is not None and view.is_committed(written)


def _properties(table: TableProperties, now_ms: int) -> bytes:
    same = {key: table.raw[key] for key in _SAME if key in table.raw}
    name = f"{table.name}_metadata"
    own = {keys.NAME: name, keys.ARCHIVE_FOLDER: "archived" if table.version < 8 else "history"}
    if table.version >= 8:
        own[keys.MERGE_MODE] = "CUSTOM"
    return properties_file({**same, **_OWN, **own}, now_ms)

"""Making a metadata table with the list of files, for a table that has none.

Its property comes last, so nobody reads what a dead process left, and the next one begins anew.
"""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.table_properties import TableProperties, properties_file
from hoodie_ds.metadata_table.compaction import base_file, put_once
from hoodie_ds.metadata_table.file_records import listing_records
from hoodie_ds.metadata_table.payload import encode_record
from hoodie_ds.metadata_table.record_keys import file_id
from hoodie_ds.metadata_table.record_schema import record_schema
from hoodie_ds.metadata_table.stored import EXTENSION, FILES_PARTITION
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.table.file_name import BaseFileName, LogFileName, written_by
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table, update_properties
from hoodie_ds.timeline.bodies.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import next_time
from hoodie_ds.timeline.paths import (
    METADATA_TABLE,
    PARTITION_METAFILE,
    PROPERTIES,
    V1,
    in_partition,
    instant_path,
)
from hoodie_ds.timeline.timeline import Timeline

_FIRST: Final = {1: "00000000000000010", 2: "00000000000000000"}
"""Time of the delta commit that fills the first partition, by layout."""
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


def create_metadata_table(table: Table, timeline: Timeline, now_ms: int) -> Table:
    """Make the metadata table from a listing, while nothing is at work on the table."""
    table.storage.delete(METADATA_TABLE)
    storage = SubfolderStorage(table.storage, METADATA_TABLE)
    put_once(storage, PROPERTIES, _properties(table.properties, now_ms))
    done = Instant(_FIRST[table.layout], Action.DELTA_COMMIT, State.COMPLETED, layout=table.layout)
    depth = f"commitTime={done.time}\npartitionDepth=1\n"
    put_once(storage, in_partition(FILES_PARTITION, PARTITION_METAFILE), depth.encode())
    name = BaseFileName(file_id(FILES_PARTITION, 0), "0-0-0", done.time, EXTENSION)
    path = in_partition(FILES_PARTITION, str(name))
    sizes = _committed(FileSystemView(table.storage, timeline))
    records = listing_records(sizes, {path.rpartition("/")[0] for path in sizes})
    entries = sorted((key.encode(), encode_record(one)) for key, one in records.items())
    size = len(put_once(storage, path, base_file(entries)))
    stat = WriteStat(
        name.file_id,
        path,
        FILES_PARTITION,
        num_writes=len(entries),
        num_inserts=len(entries),
        total_write_bytes=size,
        file_size_bytes=size,
    )
    schema = {SCHEMA_KEY: record_schema(has_meta_fields=False)}
    body = CommitMetadata((stat,), "BULK_INSERT_PREPPED", schema).to_bytes(table.layout)
    for state in (State.REQUESTED, State.INFLIGHT):
        put_once(storage, instant_path(done.at(state)), b"")
    utc = table.properties.timeline_in_utc
    ended = "" if table.layout == V1.version else next_time(now_ms, utc, timeline.latest_time)
    put_once(storage, instant_path(done.completed(ended)), body)
    return update_properties(table, {keys.METADATA_PARTITIONS: FILES_PARTITION}, (), now_ms)


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

"""Log compactions of Hudi on the JVM: planned before a write, and carried out after it."""

from __future__ import annotations

from dataclasses import replace

from hoodie_ds.columns.meta_columns import COMMIT_TIME
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.formats.log.data_block import encode_avro_block
from hoodie_ds.formats.log.log_block import HeaderKey, encode_block, read_blocks
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import instant_path
from tests.faults.writers import Place
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, found, trips

OLD = [("1", "x", 1, 1.0), ("2", "x", 1, 1.0), ("3", "x", 1, 1.0)]
NEWER = [("2", "x", 1, 2.0)]
NEWEST = [("1", "x", 1, 3.0), ("4", "x", 1, 3.0)]
RIGHT = [("1", "x", 1, 3.0), ("2", "x", 1, 2.0), ("3", "x", 1, 1.0), ("4", "x", 1, 3.0)]


def compacted_late(place: Place) -> None:
    """Write OLD, NEWER and NEWEST, and then what a log compaction makes of the first two."""
    times = []
    for rows in (OLD, NEWER):
        times.append(str(place.table.upsert(trips(*rows)).instant_time))
    merged = place.table.read()
    place.clock.advance(10_000)
    place.table.upsert(trips(*NEWEST))
    newest = place.table.timeline.commits[-1]
    (stat,) = read_commit(place.storage, newest).stats
    assert stat.log is not None
    name = LogFileName.parse(stat.path.rpartition("/")[2])
    assert name is not None
    log = replace(name, version=name.version + 1)
    path = stat.path.replace(str(name), str(log))
    time = following(times[-1])
    merged = merged.drop_columns([COMMIT_TIME]).add_column(0, COMMIT_TIME, [[time] * 3])
    (block,) = read_blocks(encode_avro_block(merged, arrow_to_avro(merged.schema, "t"), time), "b")
    header = {**block.header, HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(times)}
    body = encode_block(block.block_type, header, block.content)
    place.storage.put_if_absent(path, body)
    done = replace(
        stat, path=path, file_size_bytes=len(body), log=replace(stat.log, version=log.version)
    )
    commit = CommitMetadata((done,), "LOG_COMPACT", {})
    instant = Instant(time, Action.DELTA_COMMIT, State.COMPLETED, layout=1)
    place.storage.put_if_absent(instant_path(instant), commit.to_bytes(1))


def test_what_was_written_meanwhile_is_newer() -> None:
    place = Place({**TRIPS, TYPE: "MERGE_ON_READ", VERSION: "6", BUCKETS: "1"})
    compacted_late(place)
    assert found(place.table) == RIGHT
    assert found_file_by_file(place) == RIGHT
    place.table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert not place.table.timeline.pending
    assert found(place.table) == RIGHT


def found_file_by_file(place: Place) -> list[tuple[object, ...]]:
    """The rows, where no more than one log file is held."""
    pinned = PinnedTable.latest(place.storage)
    reader, columns = replace(pinned.reader(), held_bytes=0), ["id", "city", "ts", "fare"]
    read = (rows for one in pinned.slices() for rows in reader.read(one, columns))
    return sorted(tuple(row.values()) for rows in read for row in rows.to_pylist())

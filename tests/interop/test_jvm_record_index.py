"""Tables with a record index of Hudi's: after our writes Hudi can build it again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import open_storage
from tests.integration.test_file_groups_of_tasks import upsert as by_file_groups
from tests.integration.test_record_index_kept import assert_indexed
from tests.integration.test_several_batches import writer
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.interop.test_jvm_global import OPTIONS as OF_MOVES
from tests.interop.test_jvm_global import Row, arrow, batch
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips
from tests.tiers import by_day

pytestmark = [pytest.mark.jvm, pytest.mark.usefixtures("by_tasks")]

METADATA = {"hoodie.metadata.enable": "true", "hoodie.compact.inline": "false"}
OF_TABLE = {
    **METADATA,
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
}
OF_PARTITIONS = {
    **METADATA,
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
}
OPTIONS = {key: value for key, value in TRIPS.items() if key != BUCKETS}
OURS = {
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
DROPPING = {"hoodie.metadata.enable": "false"}
KINDS = [(version, kind) for version in ("6", "8", "9") for kind in TYPES]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("version", "kind"), by_day(KINDS, {("6", "COPY_ON_WRITE"), ("9", "MERGE_ON_READ")})
)
def test_hudi_builds_its_record_index_again(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str
) -> None:
    path, options = tmp_path / "t", {**OPTIONS, TYPE: kind, TABLE_VERSION: version}
    rows = trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0), ("c", "y", 1, 1.0))
    jvm_hudi.write(path, rows, {**options, **OF_TABLE})
    HoodieTable(str(path), DROPPING).upsert(trips(("a", "y", 2, 2.0), ("d", "x", 2, 2.0)))
    HoodieTable(str(path)).upsert(trips(("b", "z", 3, 3.0)))  # no metadata table tells of it now
    jvm_hudi.write(path, trips(("c", "y", 4, 4.0), ("d", "x", 4, 4.0)), {**options, **OF_TABLE})
    table = HoodieTable(str(path), DROPPING)
    assert found(table) == [
        ("a", "y", 2, 2.0),
        ("b", "z", 3, 3.0),
        ("c", "y", 4, 4.0),
        ("d", "x", 4, 4.0),
    ]
    assert_same_rows(jvm_hudi.read(path), table.read())
    assert table.inspect.verify()


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(("version", "kind"), by_day(KINDS, {("9", "COPY_ON_WRITE")}))
def test_records_move_back_and_forth_under_a_record_index(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str
) -> None:
    """Hudi builds its index anew in each of its turns, and we drop it in each of ours."""
    path, options = tmp_path / "t", {**OF_MOVES, TYPE: kind, TABLE_VERSION: version}
    theirs = {**options, **OF_TABLE, "hoodie.record.index.update.partition.path": "true"}
    draw, stored = random.Random(int(version)), dict[str, Row]()
    for turn in range(6):
        rows = batch(draw, turn, 0.0)
        if turn % 3 == 0:
            jvm_hudi.write(path, arrow(rows), theirs)
        else:
            HoodieTable(str(path), DROPPING).upsert(arrow(rows))
        for row in rows:
            if row[0] not in stored or row[2] >= stored[row[0]][2]:
                stored[row[0]] = row
        table = HoodieTable(str(path))
        read = table.read(columns=["id", "city", "ts"]).to_pylist()
        assert sorted(tuple(r.values()) for r in read) == sorted(r[:3] for r in stored.values())
        assert_same_rows(jvm_hudi.read(path), table.read())
    assert table.inspect.verify()


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", by_day(("6", "9"), {"9"}))
def test_an_index_that_hudi_dropped_asks_for_nothing(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str
) -> None:
    path, options = tmp_path / "t", {**OPTIONS, TABLE_VERSION: version}
    jvm_hudi.write(path, trips(("a", "x", 1, 1.0)), {**options, **OF_TABLE})
    jvm_hudi.sql(f"create table indexed_{version} using hudi location '{path}'")
    settings = {
        "hoodie.metadata.enable": "true",
        TABLE_VERSION: version,
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.lock.provider": (
            "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
        ),
    }
    for key, text in settings.items():
        jvm_hudi.sql(f"set {key}={text}")
    try:
        jvm_hudi.sql(f"drop index record_index on indexed_{version}")
    finally:
        for key in settings:
            jvm_hudi.sql(f"reset {key}")
    HoodieTable(str(path), {**DROPPING, "hoodie.index.type": "BLOOM"}).upsert(
        trips(("a", "y", 2, 2.0))
    )
    assert found(HoodieTable(str(path))) == [("a", "x", 1, 1.0), ("a", "y", 2, 2.0)]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("kind", by_day(TYPES, {"COPY_ON_WRITE"}))
def test_hudi_builds_an_index_of_each_partition_again(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str
) -> None:
    path, options = tmp_path / "t", {**OPTIONS, TYPE: kind, TABLE_VERSION: "9"}
    jvm_hudi.write(
        path, trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)), {**options, **OF_PARTITIONS}
    )
    HoodieTable(str(path), DROPPING).upsert(trips(("a", "y", 2, 2.0)))
    HoodieTable(str(path)).upsert(trips(("a", "x", 3, 3.0), ("b", "y", 3, 3.0)))
    jvm_hudi.write(
        path, trips(("b", "x", 4, 4.0), ("a", "y", 4, 4.0)), {**options, **OF_PARTITIONS}
    )
    table = HoodieTable(str(path), DROPPING)
    assert found(table) == [
        ("a", "x", 3, 3.0),
        ("a", "y", 4, 4.0),
        ("b", "x", 4, 4.0),
        ("b", "y", 3, 3.0),
    ]
    assert_same_rows(jvm_hudi.read(path), table.read())
    assert table.inspect.verify()


OF_EACH = [(version, kind) for version in ("8", "9") for kind in TYPES]
ESCAPED = ("x", "y-z_1", "ä b", "c+(d)", "e,f", "u", "w", "v")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(("version", "kind"), by_day(OF_EACH, {("9", "MERGE_ON_READ")}))
def test_both_keep_the_record_index_of_each_partition(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str
) -> None:
    """Both find by it where both have left the keys.

    Of a key in two partitions Hudi may lose a row, also in a table that it alone writes.
    """
    path, options = tmp_path / "t", {**OPTIONS, TYPE: kind, TABLE_VERSION: version}
    theirs = {**options, **OF_PARTITIONS, "hoodie.clean.automatic": "false"}
    ours = HoodieTable(str(path), {**options, "hoodie.index.type": "RECORD_LEVEL_INDEX"})
    draw, stored = random.Random(int(version)), dict[tuple[str, str], tuple[str, str, int, float]]()
    for ts in range(6):
        keys = [(f"k{n}", ESCAPED[n % (3 + ts)]) for n in draw.sample(range(3 + ts), 3)]
        rows = {key: (*key, ts, float(ts)) for key in keys}
        if ts % 2:
            jvm_hudi.write(path, trips(*rows.values()), theirs)
        else:
            rows |= {("both", city): ("both", city, ts, 1.0) for city in "xz"}
            ours.upsert(trips(*rows.values()))
            ours.compact() if kind == "MERGE_ON_READ" else ours.cluster()
            ours.upsert(trips(("undone", draw.choice(ESCAPED), ts, 1.0)))
            ours.rollback()
        stored |= rows
        assert_indexed(open_storage(str(path)))
        assert found(ours) == sorted(stored.values())
        assert_same_rows(jvm_hudi.read(path), ours.read())
    assert "record_index" in ours.properties.metadata_partitions
    assert ours.inspect.verify()


ROUNDS = [("9", "MERGE_ON_READ", 1), *((*kind, 3) for kind in KINDS)]


@pytest.mark.parametrize(("version", "kind", "rounds"), by_day(ROUNDS, ROUNDS[:1]))
def test_both_keep_the_record_index(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str, rounds: int
) -> None:
    """Hudi's upserts find by it where our writes, services and rollbacks have left the keys."""
    path, options = tmp_path / "t", {**OPTIONS, TYPE: kind, TABLE_VERSION: version}
    theirs = {
        **options,
        **OF_TABLE,
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.clean.automatic": "false",
    }
    jvm_hudi.write(path, trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)), theirs)
    ours, stored = (
        HoodieTable(str(path), {**options, **OURS}),
        dict[str, tuple[str, str, int, float]](),
    )
    for ts in range(2, 2 + 4 * rounds, 4):
        there = "xyz"[ts // 4 % 3]
        ours.upsert(trips(("a", there, ts, 2.0), (f"n{ts}", "z", ts, 2.0), ("c", "y", ts, 2.0)))
        ours.delete(trips(("b", "y", ts, None)))
        ours.compact() if kind == "MERGE_ON_READ" else ours.cluster()
        ours.upsert(trips(("a", "w", ts + 1, 3.0), ("undone", "x", ts + 1, 3.0)))
        ours.rollback()
        assert_indexed(open_storage(str(path)))
        dead = trips((f"dead{ts}", "x", ts + 1, 3.0))  # Hudi rolls it back
        begun = writer(str(path), {**options, **OURS}).begin(dead.schema)
        assert write_task(begun, TaskId(), None, dead.to_batches(), sole_writer=True).key_files
        jvm_hudi.write(
            path,
            trips(
                ("a", there, ts + 2, 4.0),
                ("b", "y", ts + 2, 4.0),
                ("c", "w", ts + 2, 4.0),
                ("undone", "z", ts + 2, 4.0),
                (f"dead{ts}", "z", ts + 2, 4.0),
            ),
            theirs,
        )
        assert_indexed(open_storage(str(path)))
        stored |= {
            f"n{ts}": (f"n{ts}", "z", ts, 2.0),
            "a": ("a", there, ts + 2, 4.0),
            "b": ("b", "y", ts + 2, 4.0),
            "c": ("c", "w", ts + 2, 4.0),
            "undone": ("undone", "z", ts + 2, 4.0),
            f"dead{ts}": (f"dead{ts}", "z", ts + 2, 4.0),
        }
        assert found(ours) == sorted(stored.values())
        assert_same_rows(jvm_hudi.read(path), ours.read())
    assert "record_index" in ours.properties.metadata_partitions


@pytest.mark.parametrize(
    ("version", "kind"), by_day(KINDS, {("6", "COPY_ON_WRITE"), ("9", "MERGE_ON_READ")})
)
def test_hudi_finds_keys_by_an_index_that_we_have_made(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str
) -> None:
    """It would store a moved key twice if it did not find the first place, and so would we."""
    path, options = tmp_path / "t", {**OPTIONS, TYPE: kind, TABLE_VERSION: version}
    theirs = {**options, **OF_TABLE, "hoodie.record.index.update.partition.path": "true"}
    ours = HoodieTable(str(path), {**options, **OURS})
    ours.upsert(trips(*((f"k{n}", "xyz"[n % 3], 1, 1.0) for n in range(20))))
    for ts in (2, 4):
        jvm_hudi.write(
            path, trips(*((f"k{n}", "xyz"[(n + ts) % 3], ts, 1.0) for n in range(0, 24, 2))), theirs
        )
        assert_indexed(open_storage(str(path)))
        ours.upsert(trips(*((f"k{n}", "xyz"[n % 3], ts + 1, 1.0) for n in range(0, 24, 3))))
        assert_indexed(open_storage(str(path)))
    assert [row[0] for row in found(ours)] == sorted(f"k{n}" for n in range(23))
    assert_same_rows(jvm_hudi.read(path), ours.read())


@pytest.mark.parametrize(("version", "kind"), by_day(KINDS, {("9", "COPY_ON_WRITE")}))
def test_hudi_finds_the_keys_that_tasks_of_file_groups_have_moved(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str
) -> None:
    """And we those that Hudi has moved: each task writes the rows of its file groups alone."""
    path, options = tmp_path / "t", {**OPTIONS, TYPE: kind, TABLE_VERSION: version}
    theirs = {**options, **OF_TABLE, "hoodie.record.index.update.partition.path": "true"}
    draw, stored = random.Random(int(version)), dict[str, tuple[str, str, int, float]]()
    for turn in range(4):
        rows = [
            (f"k{n}", draw.choice("xyz"), 3 * turn + draw.randrange(5), float(turn))
            for n in draw.sample(range(30 + 10 * turn), 25)
        ]
        if turn % 2:
            jvm_hudi.write(path, trips(*rows), theirs)
        else:
            by_file_groups(path, {**options, **OURS}, trips(*rows))
        for row in rows:
            if row[0] not in stored or row[2] >= stored[row[0]][2]:
                stored[row[0]] = row
        assert found(HoodieTable(str(path))) == sorted(stored.values())
        assert_indexed(open_storage(str(path)))
    assert_same_rows(jvm_hudi.read(path), HoodieTable(str(path)).read())

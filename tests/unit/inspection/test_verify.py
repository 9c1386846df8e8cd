"""Each kind of damage is found, and called by its name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.inspection import verify
from hoodie_ds.sink.replay_guard import BATCH_KEY
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table import checksums
from hoodie_ds.testing import (
    CRASHES,
    FaultyStorage,
    MemoryStorage,
    SimulatedCrash,
    fault_points,
    forget_process,
)
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.paths import instant_path
from tests.cli_runs import done, run
from tests.golden.golden_tables import expected_rows, golden_names, unzip_table
from tests.tables import TRIPS, TYPE, tree, trips

WRITER = "hoodie.datasource.write.streaming.checkpoint.identifier"
BATCH = "hoodie.datasource.write.batch.identifier"
BUCKETS = {"hoodie.bucket.index.num.buckets": "2"}
FILE = "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0_7-0-0_{}.parquet"
Change = Callable[[pa.Table], pa.Table]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    table = HoodieTable(tmp_path, {**TRIPS, TYPE: request.param})
    for number in range(3):
        rows = trips((f"k{number}", "oslo", number, 1.0), ("a", "oslo", number, 2.0))
        table.upsert(rows, {WRITER: "w", BATCH: str(number)})
    return table


def kinds(table: HoodieTable) -> set[str]:
    findings = table.inspect.verify().findings
    assert all(found.remedy for found in findings)
    return {found.kind.value for found in findings}


def newest(path: Path, table: HoodieTable) -> Path:
    """A file of the newest commit."""
    time = table.timeline.commits[-1].time
    body = (path / ".hoodie" / f"{time}.{table.timeline.commits[-1].action.value}").read_bytes()
    return path / min(CommitMetadata.from_bytes(body, "").file_paths)


def test_a_table_in_order_has_no_findings(table: HoodieTable, tmp_path: Path) -> None:
    before, seen = tree(tmp_path), []
    found = table.inspect.verify(lambda done, total: seen.append((done, total)))
    assert (bool(found), found.findings, found.rows) == (True, (), 4)
    assert found.files == len(list(found_files(table)))
    assert seen[-1] == (found.bytes, found.bytes)
    assert "4 rows, 0 damages" in repr(found)
    assert tree(tmp_path) == before


def found_files(table: HoodieTable) -> list[str]:
    return [f"{g.file_id}{n}" for g in table.inspect.files().groups
            for n in range(bool(g.base_file) + g.log_files)]  # fmt: skip


@pytest.mark.parametrize("name", golden_names())
def test_tables_of_hudi_are_in_order(name: str, tmp_path: Path) -> None:
    found = HoodieTable(unzip_table(name, tmp_path)).inspect.verify()
    assert (found.findings, found.rows) == ((), len(expected_rows(name)))


def test_a_lost_file(table: HoodieTable, tmp_path: Path) -> None:
    newest(tmp_path, table).unlink()
    assert kinds(table) == {"missing-file"}


def test_a_partition_that_hudi_does_not_find(table: HoodieTable, tmp_path: Path) -> None:
    metafile = tmp_path / "oslo" / ".hoodie_partition_metadata"
    told = metafile.read_bytes()
    metafile.unlink()
    (one,) = table.inspect.verify().damage
    assert (one.kind.value, one.where) == ("missing-file", "oslo/.hoodie_partition_metadata")
    metafile.write_bytes(told)
    assert table.inspect.verify()


def test_a_file_that_was_cut_off(table: HoodieTable, tmp_path: Path) -> None:
    file = newest(tmp_path, table)
    file.write_bytes(file.read_bytes()[:-1])
    found = table.inspect.verify()
    assert {one.kind.value for one in found.damage} == {"wrong-size"}
    assert found.damage[0].where == file.relative_to(tmp_path).as_posix()


def test_a_flipped_bit(table: HoodieTable, tmp_path: Path) -> None:
    file = newest(tmp_path, table)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert kinds(table) == {"damaged-file"}


def test_a_damaged_commit(table: HoodieTable, tmp_path: Path) -> None:
    instant = table.timeline.commits[0]
    file = tmp_path / ".hoodie" / f"{instant.time}.{instant.action.value}"
    for keep in (-20, 0):
        file.write_bytes(file.read_bytes()[:keep])
        (found,) = table.inspect.verify().findings
        assert (found.kind.value, found.where) == ("damaged-instant", f".hoodie/{file.name}")


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_completed_instant_that_is_lost(tmp_path: Path, number: int, version: str) -> None:
    """Its rows are hidden, or those that it replaced are back, and no instant tells."""
    table = HoodieTable(tmp_path, {**TRIPS, "hoodie.write.table.version": version})
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    table.overwrite(trips(("b", "rome", 1, 1.0)))
    table.upsert(trips(("c", "oslo", 1, 1.0)))
    path = instant_path(table.timeline.commits[number])
    (tmp_path / path).unlink()
    found = HoodieTable(tmp_path).inspect.verify()
    (lost,) = (one for one in found.damage if one.kind.value == "damaged-instant")
    assert (lost.where, "restore" in lost.remedy) == (path, True)
    (pending,) = HoodieTable(tmp_path).inspect.plans()
    for told in (pending.remedy, *HoodieTable(tmp_path).inspect.show().remarks):
        assert lost.remedy in told
        assert "if its writer is dead" not in told


@pytest.mark.parametrize("version", ["6", "9"])
def test_the_newest_commit_is_damaged_and_nothing_is_remembered(
    tmp_path: Path, version: str
) -> None:
    """It tells of the columns too, which a new process does not know then."""
    made, copy = tmp_path / "made", tmp_path / "copy"
    table = HoodieTable(made, {**TRIPS, "hoodie.write.table.version": version})
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    shutil.copytree(made, copy)
    where = damaged(copy, "*.commit")
    for command in ("verify", "report"):
        output = ["--json"] if command == "verify" else ["-o", tmp_path / "page.html"]
        told = run(command, copy, *output)
        if command == "verify":
            (one,) = told.json["findings"]
            assert (told.code, one["kind"], one["where"]) == (3, "damaged-instant", where)
        else:
            assert told.code == 0
            assert where in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_commit_with_the_content_of_another(tmp_path: Path, version: str) -> None:
    made, copy = tmp_path / "made", tmp_path / "copy"
    table = HoodieTable(made, {**TRIPS, "hoodie.write.table.version": version})
    for number in range(3):
        table.upsert(trips((f"k{number}", "oslo", 1, 1.0)))
    paths = [instant_path(instant) for instant in table.timeline.commits]
    bodies = [(made / path).read_bytes() for path in paths]
    shutil.copytree(made, copy)  # of this one the process remembers nothing
    for path, body in zip(paths[1:], bodies[:0:-1], strict=True):
        (copy / path).write_bytes(body)
    found = HoodieTable(copy).inspect.verify().damage
    assert {one.where for one in found if one.kind.value == "damaged-instant"} == set(paths[1:])


def test_a_lost_instant_that_later_decisions_stand_on(tmp_path: Path) -> None:
    """A savepoint and a change of the version have the time of the newest commit."""
    table = HoodieTable(tmp_path, TRIPS)
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    table.savepoint()
    table.delete_savepoint(table.timeline.commits[0])
    table.upgrade(9)
    path = instant_path(table.timeline.commits[0])
    (tmp_path / path).unlink()
    (one,) = HoodieTable(tmp_path).inspect.verify().damage
    assert (one.kind.value, Path(one.where).name[:17]) == ("damaged-instant", Path(path).name[:17])


@pytest.mark.parametrize("version", ["6", "9"])
def test_what_was_taken_back_or_waits_for_its_completion_is_not_lost(version: str) -> None:
    """A process may end at any operation of a write, and of a rollback by hand."""
    start = MemoryStorage()
    options = {**TRIPS, "hoodie.write.table.version": version}
    HoodieTable(start.root, options, storage=start).upsert(trips(("a", "oslo", 1, 1.0)))
    for step in (
        lambda table: table.upsert(trips(("b", "oslo", 1, 1.0))),
        lambda table: table.rollback(),
    ):
        recorded = start.copy()
        recorder = FaultyStorage(recorded)
        step(HoodieTable(start.root, options, storage=recorder))
        for point, fault in islice(fault_points(recorder.recorder.operations, CRASHES), 0, None, 3):
            left = start.copy()
            forget_process()
            with suppress(SimulatedCrash):
                step(HoodieTable(left.root, options, storage=FaultyStorage(left, [fault])))
            forget_process()
            found = HoodieTable(left.root, storage=left).inspect.verify()
            assert found.damage == (), point
        start = recorded


def test_an_orphan_is_a_remark(table: HoodieTable, tmp_path: Path) -> None:
    name = FILE.format(table.timeline.commits[-1].time)
    (tmp_path / "oslo" / name).write_bytes(b"late")
    found = table.inspect.verify()
    assert [(f.kind.value, f.severity.value, f.where) for f in found.findings] == [
        ("orphan", "remark", f"oslo/{name}")
    ]
    assert found
    ended = done("verify", tmp_path)
    assert ended.lines[0].endswith(f"; `hoodie-py cleanup {tmp_path}` deletes it")


def test_batches_out_of_order(table: HoodieTable, tmp_path: Path) -> None:
    instant = table.timeline.commits[-1]
    file = tmp_path / ".hoodie" / f"{instant.time}.{instant.action.value}"
    commit = CommitMetadata.from_bytes(file.read_bytes(), "")
    again = json.dumps({"query": "w", "batch": 0})
    file.write_bytes(commit.with_extra({BATCH_KEY: again}).to_bytes(1))
    table = HoodieTable(tmp_path)
    found = table.inspect.verify().findings
    assert {one.kind.value for one in found} == {"replay-guard"}
    assert "batch 0 of w comes after its batch 1" in found[0].message


def rewrite(path: Path, change: Change) -> None:
    """Write a base file of a table of Hudi's anew, as a writer with a bug might have done."""
    file = max(
        (f for f in path.rglob("*.parquet") if ".hoodie" not in f.parts),
        key=lambda f: f.name.rpartition("_")[2],
    )
    table = pq.read_table(file, partitioning=None)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), file)
    for commit in (path / ".hoodie").glob(f"{file.stem.rpartition('_')[2]}.*commit"):
        body = json.loads(commit.read_bytes())
        for stat in (s for stats in body["partitionToWriteStats"].values() for s in stats):
            if stat["path"].endswith(file.name):
                stat["fileSizeInBytes"] = file.stat().st_size
        commit.write_text(json.dumps(body))


def replaced(name: str, value: Any) -> Change:
    def change(table: pa.Table) -> pa.Table:
        column = pa.array([value, *table[name].to_pylist()[1:]], table.schema.field(name).type)
        return table.set_column(table.column_names.index(name), table.schema.field(name), column)

    return change


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("v6_cow_history", lambda t: t.slice(1), {"row-count"}),
        ("v6_cow_history", lambda t: pa.concat_tables([t, t.slice(0, 1)]),
         {"row-count", "duplicate-key"}),
        ("v6_cow_history", replaced("_hoodie_record_key", "k06 "), {"bloom-denies-key"}),
        ("v6_cow_history", replaced("_hoodie_partition_path", "x"), {"wrong-partition"}),
        ("v6_mor_compaction_done", lambda t: t.slice(1), {"row-count"}),
    ],
    ids=["a row is lost", "a key twice", "a key unknown to the filter", "another partition",
         "a row lost by a compaction"],
)  # fmt: skip
def test_what_a_writer_with_a_bug_leaves(
    name: str, change: Change, expected: set[str], tmp_path: Path
) -> None:
    path = unzip_table(name, tmp_path)
    rewrite(path, change)
    damage = HoodieTable(path).inspect.verify().damage
    assert {one.kind.value for one in damage} == expected
    undone = [one for one in damage if one.kind.value in ("row-count", "wrong-partition")]
    assert all("`hoodie-py " in one.remedy for one in undone)
    assert all(one.remedy for one in damage)


def bucketed(tmp_path: Path) -> tuple[Path, HoodieTable]:
    path = unzip_table("v6_mor_bucket", tmp_path)
    return path, HoodieTable(path, BUCKETS)


def test_a_key_in_a_bucket_of_others(tmp_path: Path) -> None:
    _, table = bucketed(tmp_path)
    assert kinds(table) == set()
    seen = []
    for key in map(str, range(6)):  # some of them are of the other bucket than the file's
        path, table = bucketed(tmp_path / key)  # what a process has read of a commit it keeps
        rewrite(path, replaced("_hoodie_record_key", key))
        seen.append(kinds(table))
    denied = "bloom-denies-key"
    assert {denied, "wrong-bucket"} in seen
    assert {denied} in seen


def test_buckets_that_the_table_does_not_have(tmp_path: Path) -> None:
    path, _ = bucketed(tmp_path)
    assert kinds(HoodieTable(path, {"hoodie.bucket.index.num.buckets": "1"})) == {"wrong-bucket"}


@pytest.mark.parametrize("version", ["6", "9"])
def test_numbers_of_buckets_that_cannot_be_read(tmp_path: Path, version: str) -> None:
    """All else is checked."""
    table = HoodieTable(tmp_path, {**TRIPS, **BUCKETS, "hoodie.write.table.version": version})
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    table.rescale_buckets(3, "oslo,4")
    damaged(tmp_path, "*.hashing_config", 9)
    told = run("verify", tmp_path, "--json")
    (one,) = told.json["findings"]
    assert (told.code, one["kind"], told.json["rows"]) == (3, "damaged-file", 1)
    assert ".hashing_config" in one["message"]


def test_two_file_groups_of_a_bucket(tmp_path: Path) -> None:
    path, table = bucketed(tmp_path)
    commit = min(p for p in (path / ".hoodie").glob("*commit") if p.is_file())
    body = json.loads(commit.read_bytes())
    stats = next(iter(body["partitionToWriteStats"].values()))
    stat = next(s for s in stats if s["path"].endswith(".parquet"))
    old = stat["fileId"]
    new = f"{old[:9]}ffff{old[13:]}"
    other = {**stat, "fileId": new, "path": stat["path"].replace(old, new)}
    (path / other["path"]).write_bytes((path / stat["path"]).read_bytes())
    stats.append(other)
    commit.write_text(json.dumps(body))
    assert "two-groups-of-a-bucket" in kinds(table)


def test_the_command_says_it_by_its_exit_code(table: HoodieTable, tmp_path: Path) -> None:
    assert done("verify", tmp_path).lines[-1].endswith("4 rows: 0 damages")
    assert done("verify", tmp_path, "--json").json["findings"] == []
    newest(tmp_path, table).unlink()
    ended = run("--width", "20", "verify", tmp_path)  # which the terminal wraps
    assert ended.code == 3
    (one,) = table.inspect.verify().findings
    assert ended.lines[0] == f"damage missing-file {one.where}: {one.message}; {one.remedy}"
    told = run("verify", tmp_path, "--json")
    assert (told.code, told.json["findings"][0]["kind"]) == (3, "missing-file")


def test_a_table_is_compared_with_files_and_with_another_table(
    table: HoodieTable, tmp_path: Path
) -> None:
    rows = table.read(["id", "city", "ts", "fare"])
    file = tmp_path.parent / f"{tmp_path.name}.parquet"
    pq.write_table(rows, file)
    told = done("verify", tmp_path, "--against", file)
    assert told.lines[-1].endswith("0 more, 0 others, 0 missing")
    others = trips(("k0", "oslo", 0, 1.0), ("a", "oslo", 9, 9.0), ("new", "oslo", 1, 1.0))
    other = HoodieTable(tmp_path.parent / f"{tmp_path.name}_other", TRIPS)
    other.upsert(others)
    ended = run("verify", tmp_path, "--against", other._options["path"], "--json")
    assert ended.code == 3
    assert ended.err.strip().endswith("2 more, 1 others, 1 missing")
    assert [(row["change"], row["id"]) for row in ended.json] == [
        ("update_before", "a"), ("update_after", "a"), ("insert", "k1"), ("insert", "k2"),
        ("delete", "new"),
    ]  # fmt: skip
    few = table.inspect.compare(other.inspect.as_side(), limit=1)
    assert (few.inserted, few.updated, few.deleted, few.rows.num_rows) == (2, 1, 1, 2)
    pq.write_table(rows.drop_columns(["id"]), file)
    lacking = run("verify", tmp_path, "--against", file)
    assert (lacking.code, "has no column 'id'" in lacking.err) == (1, True)


def test_what_is_no_table_no_file_and_no_query_is_refused_with_a_remedy(
    table: HoodieTable, tmp_path: Path
) -> None:
    """What a user types who does not know yet what it takes, and files that end too soon."""
    rows = table.read(["id", "city", "ts", "fare"])
    text, cut = tmp_path.parent / f"{tmp_path.name}.csv", tmp_path.parent / "cut.parquet"
    csv.write_csv(rows, text)
    pq.write_table(rows, cut)
    begin = cut.read_bytes()
    cut.write_bytes(begin[:4] + bytes(len(begin) // 3) + begin[4 + len(begin) // 3 :])
    for wrong, said in (
        (text, "cannot be read as Parquet"),
        (cut, "cannot be read as Parquet"),  # the footer is whole: found while it is read
        (tmp_path / "nowhere", "no Hudi table, no Parquet file and no query"),
        (f"SELEC * FROM '{text}'", "a query begins with SELECT"),
    ):
        refused = run("verify", tmp_path, "--against", wrong)
        assert (refused.code, said in refused.err) == (1, True)
        assert len(refused.err.splitlines()) == 1


def test_a_table_is_compared_with_a_query(table: HoodieTable, tmp_path: Path) -> None:
    """Of a text file: numbers have the types that DuckDB guesses, and are compared as values."""
    rows = table.read(["id", "city", "ts", "fare"])
    file = tmp_path.parent / f"{tmp_path.name}.csv"
    csv.write_csv(rows, file)
    query = f"SELECT id, city, ts::INTEGER AS ts, fare::DECIMAL(9, 2) AS fare FROM '{file}'"
    told = done("verify", tmp_path, "--against", query)
    assert told.lines[-1] == f"compared with {query}: 0 more, 0 others, 0 missing"
    ended = run("verify", tmp_path, "--against", f"{query} WHERE id <> 'a'")
    assert (ended.code, ended.out.splitlines()[-1].endswith("1 more, 0 others, 0 missing")) == (
        3,
        True,
    )
    for wrong, said in (
        ("select nothing", "DuckDB refuses it"),
        ("SELECT if(range > 3000, 'x', '1')::INT AS id FROM range(5000)", "DuckDB refuses it"),
        ("select id, city, ts, 'dear' as fare from (select 'a' id, 'oslo' city, 1 ts)", "'fare'"),
        ("FROM rows", "DuckDB refuses it"),  # a variable of ours, which is no table
        ("with t as (select 1) insert into t values (1)", "--against"),
    ):
        refused = run("verify", tmp_path, "--against", wrong)
        assert refused.code in (1, 2)
        assert said.strip("-") in refused.err
        assert len(refused.err.splitlines()) == 1


def damaged(path: Path, pattern: str, keep: int = 40) -> str:
    """Cut the newest file of a kind; return what it is called."""
    file = max((path / ".hoodie").rglob(pattern))
    file.write_bytes(file.read_bytes()[:keep])
    return file.relative_to(path).as_posix()


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize(
    ("pattern", "is_all"),
    [
        ("*.clean", True),
        ("*.clean.requested", True),
        ("*.rollback", True),
        ("*.rollback.requested", True),
        ("*.restore", True),
        ("*.savepoint", False),
    ],
)
def test_damaged_services(tmp_path: Path, version: str, pattern: str, is_all: bool) -> None:
    options = {**TRIPS, "hoodie.write.table.version": version}
    table = HoodieTable(tmp_path, options)
    for number in range(4):
        table.upsert(trips(("a", "oslo", number, 1.0)))
    assert table.clean({"hoodie.clean.commits.retained": "1"})
    third = table.timeline.commits[-1].time
    table.upsert(trips(("a", "oslo", 9, 1.0)))
    table.rollback()
    table.upsert(trips(("a", "oslo", 10, 1.0)))
    table.restore(third)
    table.savepoint(third)
    assert table.inspect.verify()
    for keep in (40,) if "requested" in pattern else (40, 0):
        where = damaged(tmp_path, pattern, keep)
        found = HoodieTable(tmp_path).inspect.verify()
        assert [(one.kind.value, one.where) for one in found.damage] == [("damaged-instant", where)]
        assert (found.files == 0) is (is_all and keep > 0)
    if "requested" not in pattern:  # an empty file ends no check
        (file,) = (tmp_path / "oslo").glob(f"*_{third}.parquet")
        file.unlink()
        found = HoodieTable(tmp_path).inspect.verify()
        assert {one.kind.value for one in found.damage} == {"damaged-instant", "missing-file"}


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("body", [b"", b"Obj"])
def test_nothing_depends_on_the_plan_of_a_completed_compaction(
    tmp_path: Path, version: str, body: bytes
) -> None:
    options = {**TRIPS, TYPE: "MERGE_ON_READ", "hoodie.write.table.version": version}
    table = HoodieTable(tmp_path, {**options, "hoodie.compact.inline.max.delta.commits": "1"})
    for number in range(2):
        table.upsert(trips(("a", "oslo", number, 1.0)))
    assert table.compact()
    (plan,) = (tmp_path / ".hoodie").rglob("*.compaction.requested")
    plan.write_bytes(body)
    table.upsert(trips(("a", "oslo", 2, 2.0)))
    assert table.compact()
    assert table.inspect.verify()
    assert table.read(columns=["ts"])["ts"].to_pylist() == [2]


def test_a_key_in_two_partitions_of_a_global_index(tmp_path: Path) -> None:
    options = {key: text for key, text in TRIPS.items() if "bucket" not in key}
    table = HoodieTable(tmp_path, {**options, "hoodie.index.type": "BLOOM"})
    table.upsert(trips(("a", "oslo", 1, 1.0), ("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)))
    assert kinds(table) == set()
    by_option = HoodieTable(tmp_path, {"hoodie.index.type": "GLOBAL_BLOOM"})
    (finding,) = by_option.inspect.verify().findings
    assert (finding.kind.value, finding.where) == ("duplicate-key", "(all partitions)")
    assert finding.message.endswith("more than one row: a")


def test_keys_that_are_not_stored_are_made_anew(tmp_path: Path) -> None:
    path = unzip_table("v6_cow_virtual_keys", tmp_path)
    rewrite(path, lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]))
    found = HoodieTable(path).inspect.verify()
    assert {one.kind.value for one in found.damage} == {"row-count", "duplicate-key"}
    (message,) = (f.message for f in found.damage if f.kind.value == "duplicate-key")
    assert message.startswith("1 keys have more than one row: k0")


def test_a_key_is_located_in_its_bucket_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, "hoodie.bucket.index.num.buckets": "16"})
    table.upsert(trips(*((f"k{i}", "oslo", 1, 1.0) for i in range(99))))
    opened = []
    real = LocalStorage.open_input

    def counting(self: LocalStorage, path: str) -> BinaryIO:
        opened.append(path)
        return real(self, path)

    monkeypatch.setattr(LocalStorage, "open_input", counting)
    (location,) = table.inspect.locate("k42")
    assert {path for path in opened if path.endswith(".parquet")} == {f"oslo/{location.base_file}"}
    opened.clear()
    assert not table.inspect.locate("k42", "rome")
    assert opened == []
    rows = list(table.inspect.rows(filter=pc.field("id") == "k42"))
    assert [row for piece in rows for row in piece.column("id").to_pylist()] == ["k42"]
    assert {path for path in opened if path.endswith(".parquet")} == {f"oslo/{location.base_file}"}
    opened.clear()
    assert not list(table.inspect.rows(filter=pc.field("city") == "rome"))
    assert opened == []


def test_a_large_file_is_compared_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads compare a large file once in a process, and parts of it by Parquet's checksums."""
    monkeypatch.setattr(checksums, "HELD_BYTES", 100)
    monkeypatch.setattr(verify, "HELD_BYTES", 100)
    table = HoodieTable(tmp_path, TRIPS)
    table.upsert(trips(*((f"k{i}", "oslo", i, float(i)) for i in range(999))))
    assert table.read(["id"]).num_rows == 999
    assert kinds(table) == set()
    file = next(tmp_path.glob("oslo/*.parquet"))
    metadata = pq.ParquetFile(file).metadata.row_group(0)
    names = [metadata.column(n).path_in_schema for n in range(metadata.num_columns)]
    chunk = metadata.column(names.index("fare"))
    body = bytearray(file.read_bytes())
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    body[begin + chunk.total_compressed_size - 9] ^= 1
    file.write_bytes(body)
    assert table.read(["id"]).num_rows == 999  # of other pages
    with pytest.raises(CorruptFileError):
        table.read(["fare"])
    assert kinds(table) == {"damaged-file"}
    with pytest.raises(CorruptFileError):
        HoodieTable(shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}-b")).read(["id"])

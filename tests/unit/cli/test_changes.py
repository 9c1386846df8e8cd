"""Commands that change a table: what they say, what they ask, what they do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import BinaryIO

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.filters.predicate import ALL, Predicate
from hoodie_ds.reader.scan_plan import ScanPlan
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.storage.local import LocalStorage
from tests.cli_runs import done, run
from tests.fake_metastore import FakeMetastore, in_place_of_thrift
from tests.tables import PARTITION, TRIPS, TYPE, found, tree, trips


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    table = HoodieTable(tmp_path / "t", {**TRIPS, TYPE: "MERGE_ON_READ"})
    table.upsert(trips(("a", "oslo", 1, 1.0), ("b", "rome", 1, 2.0)))
    table.upsert(trips(("a", "oslo", 2, 9.5)))
    return table


@pytest.fixture
def path(table: HoodieTable, tmp_path: Path) -> Path:
    return tmp_path / "t"


def times(table: HoodieTable) -> list[str]:
    return [instant.time for instant in table.timeline.commits]


def test_neither_a_dry_run_nor_the_answer_no_changes_anything(
    table: HoodieTable, path: Path
) -> None:
    (
        path / "oslo" / "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0_7-0-0_20990101000000000.parquet"
    ).touch()
    first = times(table)[0]
    before = tree(path)
    for words in (
        ["compact"], ["rollback"], ["savepoint"], ["restore", first], ["cleanup"],
        ["delete-partition", "oslo"], ["rescale-buckets", "7"], ["upgrade", "--to", "9"],
        ["delete", "--where", "fare > 2"], ["update", "--set", "fare = 2.5"],
        ["alter", "drop fare"],
    ):  # fmt: skip
        name, *rest = words
        told = done(name, path, *rest, "--dry-run").out
        assert told
        assert "nothing to do" not in told
        refused = run(name, path, *rest, answer="n\n")
        assert refused.code == 1
        # Click's runner may write the answer behind it
        assert refused.out.removesuffix(" n\n") == told.removeprefix("dry ")
        assert "Do it? [y/N]" in refused.err
        assert "Aborted!" in refused.err
        assert run(name, path, *rest, answer="").code == 1  # nobody is there to answer
    assert tree(path) == before


def test_compact_merges_the_log_files(table: HoodieTable, path: Path) -> None:
    lines = done("compact", path, "--yes").lines
    assert lines[0].startswith("compaction new")
    assert "log file" in lines[1]
    assert lines[-1].startswith("done: compaction 2")
    assert sum(row.log_files for row in table.inspect.files().groups) == 0
    assert found(table) == [("a", "oslo", 2, 9.5), ("b", "rome", 1, 2.0)]


def test_a_question_is_answered(table: HoodieTable, path: Path) -> None:
    told = done("rollback", path, answer="y\n").lines
    assert told[-1] == f"done: {told[0]}"
    assert f"without {times(table)[0]}" not in told[0]
    assert found(table) == [("a", "oslo", 1, 1.0), ("b", "rome", 1, 2.0)]


def test_a_rollback_with_a_dead_write_pending_asks_which(table: HoodieTable, path: Path) -> None:
    good, dead = times(table), "20200101000000000"
    for state in (".requested", ".inflight"):
        (path / f".hoodie/{dead}.deltacommit{state}").touch()
    before = tree(path)
    for words in ([], ["--yes"], ["--dry-run"]):
        refused = run("rollback", path, *words, answer="y\n")
        assert refused.code == 1
        assert f"`hoodie-py rollback {path} {dead}` takes off what a dead writer" in refused.err
        assert f"`hoodie-py rollback {path} {good[-1]}` the newest commit" in refused.err
    assert tree(path) == before
    for told in (done("show", path).out, done("plan", path).out):
        (hint,) = re.findall("`hoodie-py (.*)`", told)
        assert shlex.split(hint) == ["rollback", str(path), dead]
    done(*shlex.split(hint), "--yes")
    assert times(table) == good
    assert not table.inspect.plans()
    done("rollback", path, "--yes")
    assert times(table) == good[:-1]


def test_a_compaction_delayed_by_a_pending_write_says_so(table: HoodieTable, path: Path) -> None:
    table.upsert(trips(("a", "oslo", 3, 1.0), ("b", "rome", 3, 2.0)))
    dead = "20200101000000000"
    (path / f".hoodie/{dead}.deltacommit.requested").touch()
    for words in ([], ["--dry-run"], ["--yes"]):
        (told,) = done("compact", path, *words, "--conf", "hoodie.clean.automatic=false").lines
        why = f"compaction, nothing to do now, as deltacommit {dead} is pending: "
        assert told.removeprefix("dry ").startswith(why)
        (hint,) = re.findall("`hoodie-py (.*)`", told)
        given = ["--conf", "hoodie.clean.automatic=false"]
        assert shlex.split(hint) == ["rollback", *given, str(path), dead]
    shown = done("show", path).out
    assert f"they can be compacted once deltacommit {dead} has ended" in shown
    assert "hoodie-py compact" not in shown
    done(*shlex.split(hint), "--yes")
    assert "hoodie-py compact" in done("show", path).out
    assert "nothing to do" not in done("compact", path, "--yes").out
    assert done("compact", path, "--yes").out == "compaction, nothing to do\n"


def test_a_savepoint_is_created_restored_and_deleted(table: HoodieTable, path: Path) -> None:
    first = times(table)[0]
    told = done("savepoint", path, first, "--user", "me", "--yes").lines
    assert told[0].startswith(f"savepoint {first}: ")
    assert told[1:] == [f"done: made savepoint {first}"]
    assert [one.time for one in table.timeline.savepoints] == [first]
    lost = done("restore", path, first, "--yes").lines
    assert lost[0].startswith(f"back to {first}, without ")
    assert found(table) == [("a", "oslo", 1, 1.0), ("b", "rome", 1, 2.0)]
    refused = run("rollback", path, first, "--yes").err
    (hint,) = re.findall("`hoodie-py (.*)`", refused)
    assert hint == f"savepoint {path} {first} --delete"
    told = done(*shlex.split(hint), "--yes").lines
    assert told[-1] == f"done: deleted savepoint {first}"
    assert table.timeline.savepoints == ()
    assert run("savepoint", path, "--delete").code == 2
    assert run("restore", path, "20200101000000000", "--yes").code == 1


def test_buckets_are_rescaled(table: HoodieTable, path: Path) -> None:
    rows = found(table)
    lines = done("rescale-buckets", path, "7", "--rules", "^oslo$,3", "--yes").lines
    assert "rewritten, from " in lines[0]
    assert "to 7 buckets a partition, but ^oslo$,3" in lines[0]
    assert lines[-1].startswith(f"done: rescaled at {times(table)[-1]}, ")
    assert found(table) == rows
    nothing = done("rescale-buckets", path, "7", "--rules", "^oslo$,3", "--yes").lines
    assert nothing == ["the table has 7 buckets, but ^oslo$,3 already, nothing to do"]
    assert run("rescale-buckets", path, "0", "--yes").code == 2


def test_rows_are_deleted_by_what_they_are(table: HoodieTable, path: Path) -> None:
    words: list[str | Path] = ["delete", path, "--where", "fare > 1", "--where", "city = oslo"]
    assert done(*words, "--dry-run").lines == ["1 row would be deleted"]
    lines = done(*words, "--yes").lines
    assert lines == [f"done: 1 row deleted at {times(table)[-1]}"]
    assert found(table) == [("b", "rome", 1, 2.0)]
    nothing = done("delete", path, "--where", "city = oslo", "--yes").lines
    assert nothing == ["no row to change, nothing to do"]
    assert run("delete", path, "--yes").code == 2
    refused = run("delete", path, "--where", "price = 2", "--dry-run")
    assert (refused.code, "price is no column" in refused.err) == (2, True)


def test_rows_are_updated_by_what_they_are(table: HoodieTable, path: Path) -> None:
    words = ["--set", "fare = 2.5", "--set", "ts=7", "--where", "id = b", "--yes"]
    lines = done("update", path, *words).lines
    assert lines == [f"done: 1 row updated at {times(table)[-1]}"]
    assert done("update", path, *words).lines == ["no row to change, nothing to do"]
    for sql, error in (("price * 2", "price"), ("'a'", "column 'fare'"), ("ts / 0", "")):
        dry = run("update", path, "--expr", f"fare = {sql}", "--dry-run")
        assert (dry.code == 0, error in dry.err) == (not error, True)
    done("update", path, "--expr", "fare = CASE id WHEN 'b' THEN fare / 4 END", "--yes")
    assert table.read()["fare"].drop_null().to_pylist() == [0.625]
    assert "give --set or --expr" in run("update", path, "--yes").err
    assert "write COLUMN = SQL" in run("update", path, "--expr", "ts", "--yes").err
    done("update", path, "--set", "fare is null", "--yes")
    assert table.read(["ts", "fare"])["fare"].null_count == 2
    for given in ("fare > 2", "fare is not null"):
        refused = run("update", path, "--set", given, "--yes")
        assert (refused.code, "is no new value" in refused.err) == (2, True)
    assert "do not change" in run("update", path, "--set", "id = z", "--yes").err


@pytest.mark.parametrize(
    ("words", "answer", "times_read"),
    [
        (["delete", "--where", "fare > 2", "--yes"], "", 1),
        (["update", "--set", "fare = 3", "--yes"], "", 1),
        (["delete", "--where", "fare > 2"], "y\n", 3),  # shown, compared after the answer, and done
    ],
)
def test_matching_rows_are_read_once_if_nobody_is_asked(
    table: HoodieTable,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    answer: str,
    times_read: int,
) -> None:
    read: list[object] = []

    def planned(query: SnapshotQuery, predicate: Predicate = ALL) -> ScanPlan:
        read.append(predicate)
        return plan(query, predicate)

    plan = SnapshotQuery.plan
    monkeypatch.setattr(SnapshotQuery, "plan", planned)
    assert run(words[0], path, *words[1:], answer=answer).code == 0
    assert len(read) == times_read
    assert len(times(table)) == 3


def test_columns_are_altered(table: HoodieTable, path: Path) -> None:
    changes = (
        *("rename fare to cost", "add tip decimal(10, 2) after cost comment for the driver"),
        *("ADD at timestamp first", "comment cost in euros", "move ts after at"),
        *("nullable cost", "type cost string", "drop  tip"),
    )
    lines = done("alter", path, *changes, "--yes").lines
    time = times(table)[-1]
    columns = "at timestamp[us, tz=UTC], ts int64, id string, city string, cost string"
    assert lines == [
        f"columns would be {columns}",
        f"done: altered at {time}, columns are {columns}",
    ]
    assert sorted(row["cost"] for row in table.read(columns=["cost"]).to_pylist()) == ["2.0", "9.5"]
    nothing = done("alter", path, "move ts after at", "--yes").lines
    assert nothing == ["the columns are so already, nothing to do"]
    for change in ("rename cost", "add x", "add x nothing", "alter x", "drop", "move ts"):
        assert (
            "write" in (refused := run("alter", path, change, "--yes")).err
            or "types" in refused.err
        )
        assert refused.code == 2


def test_files_are_merged(table: HoodieTable, path: Path, tmp_path: Path) -> None:
    file = tmp_path / "news.csv"
    file.write_text(
        "key,city,ts,fare,op\na,oslo,3,7.5,U\nb,rome,1,,D\nc,rome,3,4.5,I\nd,rome,1,,D\n"
    )
    words: list[str | Path] = [path, file, "--on", "target.id = source.key", "--no-insert"]
    words += ["--delete-where", "source.op = D", "--update-where", "source.ts > target.ts"]
    before = tree(path)
    assert done("merge", *words, "--dry-run").lines == ["0 would be inserted, 1 updated, 1 deleted"]
    assert tree(path) == before
    refused = run("merge", *words, answer="n\n")
    assert (refused.code, "Do it? [y/N]" in refused.err) == (1, True)
    assert done("merge", *words, "--yes").lines[-1] == (
        f"done: 0 inserted, 1 updated, 1 deleted at {times(table)[-1]}"
    )
    assert found(table) == [("a", "oslo", 3, 7.5)]
    assert done("merge", *words, "--yes").lines[-1] == "no row to change, nothing to do"
    file.write_text("id,city,ts,fare,op\nc,rome,3,4.5,I\nd,rome,1,,D\n")
    words = [path, file, "--on", "id", "--on", "city", "--insert-where", "source.op != D"]
    done("merge", *words, "--no-update", "--delete-others", "--yes")
    assert found(table) == [("c", "rome", 3, 4.5)]
    refused = run("merge", path, file, "--on", "price", "--yes")
    assert (refused.code, "the target's columns are" in refused.err) == (2, True)


def test_a_question_that_has_become_another_is_asked_again(
    table: HoodieTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object, **__: object) -> None:
        table.upsert(trips(("z", "oslo", 1, 9.0)))

    monkeypatch.setattr("click.confirm", late)
    refused = run("delete", path, "--where", "fare > 2")
    assert "the table has changed since the question: 2 rows would be deleted" in refused.err
    assert len(found(table)) == 3
    file = path.with_name("news.csv")
    file.write_text("id,city,ts,fare\nb,rome,1,5\n")
    table.delete(where="id = z")
    refused = run("merge", path, file, "--on", "id", "--delete-others")
    assert "since the question: 0 would be inserted, 1 updated, 2 deleted; run" in refused.err
    assert len(found(table)) == 3


def test_partitions_are_deleted(table: HoodieTable, path: Path) -> None:
    nothing = done("delete-partition", path, "paris", "os*lo", "--exact", "--yes").lines
    assert nothing == ["no such partition, nothing to do"]
    lines = done("delete-partition", path, "os*", "--yes").lines
    assert lines[0].startswith("1 partition, ")
    assert lines[1:] == ["  oslo", f"done: deleted at {times(table)[-1]}"]
    assert found(table) == [("b", "rome", 1, 2.0)]


def test_versions_change(table: HoodieTable, path: Path) -> None:
    before = table.properties.version
    if before != 6:
        done("downgrade", path, "--to", "6", "--yes")
    lines = done("upgrade", path, "--to", "9", "--yes").lines
    assert lines[0].startswith("version 6 to 9, ")
    assert any("hoodie.table.version = 9" in line for line in lines)
    assert table.properties.version == 9
    done("downgrade", path, "--to", "6", "--yes")
    assert table.properties.version == 6
    assert run("upgrade", path, "--to", "7").code == 2
    assert len(found(table)) == 2


def test_a_version_change_shows_its_compactions_and_what_cannot_be_rolled_back(
    table: HoodieTable, path: Path
) -> None:
    past = "commits of before can be neither rolled back nor restored"
    told = done("upgrade", path, "--to", "9", "--dry-run").lines[0]
    assert told.startswith("version 6 to 9, ")
    assert told.endswith(f"; 1 file group compacted; {past}")
    before = table.timeline.commits[-1].time
    assert done("upgrade", path, "--to", "8", "--yes").lines[-1].endswith(f"timeline; {past}")
    for ended in (run("rollback", path), run("restore", path, before)):
        assert ended.code == 1
        assert "was written before the table's version was changed" in ended.err
    told = done("upgrade", path, "--to", "9", "--dry-run").lines[0]  # which moves no file
    assert told.endswith("and 0 files of the timeline")


def test_services_with_nothing_to_do_say_so(table: HoodieTable, path: Path) -> None:
    for name in ("clean", "archive", "cleanup"):
        assert "nothing to do" in done(name, path, "--yes").out
        assert "dry" not in done(name, path).out
    refused = run("cluster", path)
    assert (refused.code, "Error: " in refused.err) == (1, True)


def test_clean_takes_options_and_lists_deleted_files(table: HoodieTable, path: Path) -> None:
    for number in range(3, 6):
        table.upsert(trips(("a", "oslo", number, 1.0)))
        table.compact()
    keep = ["--conf", "hoodie.clean.commits.retained=1"]
    assert "dry clean new" in done("clean", path, *keep, "--dry-run").out
    assert "deleted" in done("clean", path, *keep, "--yes").lines[-1]
    few = ["--conf", "hoodie.keep.max.commits=3", "--conf", "hoodie.keep.min.commits=2"]
    assert "archiv" in done("archive", path, *keep, *few, "--dry-run").out


def test_only_the_first_of_many_parts_are_listed(table: HoodieTable, path: Path) -> None:
    for number in range(25):
        name = f"{number:08}-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0_7-0-0_20990101000000000.parquet"
        (path / "oslo" / name).touch()
    lines = done("cleanup", path, "--dry-run").lines
    assert lines[0] == "25 files that no commit names (0 bytes)"
    assert len(lines) == 22
    assert lines[-1] == "  and 5 more"


def test_a_delta_log_is_created_and_repaired(path: Path) -> None:
    table = HoodieTable(path, {**TRIPS, TYPE: "MERGE_ON_READ"})
    newest = f"Hudi instant {times(table)[-1]}: 2 files added, 0 removed"
    assert done("delta", "sync", path, "--dry-run").lines == [f"dry Delta version 0, {newest}"]
    assert not (path / "_delta_log").exists()
    assert done("delta", "sync", path, "--yes").lines[-1] == f"done: Delta version 0, {newest}"
    assert done("delta", "sync", path).lines == ["the Delta log is up to date: version 0"]
    assert run("delta", "vacuum", path).code == 2


def test_a_metadata_table_is_created_and_dropped(path: Path) -> None:
    switch = ("--conf", "hoodie.metadata.index.bloom.filter.enable=true")
    would = done("metadata", "create", path, *switch, "--dry-run").lines
    assert would == ["metadata table: files, bloom_filters would be made"]
    made = done("metadata", "create", path, *switch, "--yes").lines
    assert made[-1] == "done: metadata table: files, bloom_filters made"
    assert done("metadata", "create", path, *switch).lines == ["metadata table: nothing to do"]
    assert done("metadata", "check", path).out.endswith(": 0 damages\n")
    assert done("metadata", "check", path, "--repair").lines == ["metadata table: nothing to do"]
    assert run("metadata", "create", path, "--repair").code == 2
    one = ("--partition", "bloom_filters", "--yes")
    assert run("metadata", "create", path, *one).code == 2
    dropped = done("metadata", "drop", path, *one).lines
    assert dropped[-1] == "done: metadata table: bloom_filters dropped"
    assert done("metadata", "drop", path, "-y").lines[-1] == "done: metadata table: files dropped"


def test_a_table_is_synced_into_a_catalog(path: Path) -> None:
    fake = FakeMetastore()
    with in_place_of_thrift(fake):
        told = done("sync", "hive", path, "--dry-run").out
        assert "  trips_ro: created; 2 partitions added" in told
        assert fake.tables == {}
        done("sync", "hive", path, "--yes")
        assert "the table is up to date in" in done("sync", "hive", path, "--yes").out
    assert set(fake.get_all_tables("default")) == {"trips", "trips_ro", "trips_rt"}
    refused = run("sync", "hive", path, "--yes", "--conf",
                  "hoodie.datasource.hive_sync.metastore.uris=thrift://127.0.0.1:1")  # fmt: skip
    assert refused.code == 1
    assert "no Hive metastore answers" in refused.err


def test_long_work_shows_its_progress(tmp_path: Path) -> None:
    rows = trips(*((f"k{i}", "xyz"[i % 3], 1, 1.0) for i in range(30)))
    table = HoodieTable(tmp_path / "t", {**TRIPS, TYPE: "MERGE_ON_READ"})
    table.upsert(rows)
    table.upsert(rows)
    groups = len(table.inspect.files().groups)
    seen: list[tuple[int, int]] = []
    table.compact(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(number, groups) for number in range(1, groups + 1)]
    size = sum(row.base_bytes for row in table.inspect.files().groups)
    seen.clear()
    table.rescale_buckets(5, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len(seen) == groups
    assert seen[-1] == (size, size)
    bloom = {key: text for key, text in TRIPS.items() if "bucket" not in key}
    other = HoodieTable(tmp_path / "o", {**bloom, "hoodie.index.type": "BLOOM"})
    other.upsert(rows)
    seen.clear()
    sort = {"hoodie.clustering.plan.strategy.sort.columns": "id"}
    assert other.cluster(sort, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_key_is_traced_in_its_bucket_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, "hoodie.bucket.index.num.buckets": "16"})
    table.upsert(trips(*((f"k{i}", "oslo", 1, 1.0) for i in range(99))))
    opened: list[str] = []
    real = LocalStorage.open_input

    def counting(self: LocalStorage, path: str) -> BinaryIO:
        opened.append(path)
        return real(self, path)

    monkeypatch.setattr(LocalStorage, "open_input", counting)
    (event,) = table.inspect.trace("k42")
    assert {path for path in opened if path.endswith(".parquet")} == {f"oslo/{event.file}"}
    assert not table.inspect.trace("nobody")
    table.rescale_buckets(3)  # where the key was in another bucket before
    assert HoodieTable(tmp_path).inspect.trace("k42")[0].what == "inserted"


@pytest.mark.parametrize("name", ["rollback", "savepoint", "restore", "delete-partition"])
def test_instants_that_the_question_did_not_name_are_kept(
    name: str, table: HoodieTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else commits while the question is read; yes is said to what was told."""
    rest = {"restore": [times(table)[0]], "delete-partition": ["*"]}.get(name, [])

    def confirm(*_: object, **__: object) -> None:
        table.upsert(trips(("c", "pisa", 1, 3.0)))

    monkeypatch.setattr("click.confirm", confirm)
    refused = run(name, path, *rest)
    assert (refused.code, "changed since the question" in refused.err) == (1, True)
    assert len(found(table)) == 3
    assert not table.timeline.savepoints


def test_a_table_without_partitions_lists_no_deleted_partitions(tmp_path: Path) -> None:
    HoodieTable(tmp_path, {**TRIPS, PARTITION: ""}).upsert(trips(("a", "oslo", 1, 1.0)))
    for flag in ("--dry-run", "--yes"):
        refused = run("delete-partition", tmp_path, "*", flag)
        assert (refused.code, refused.out) == (2, "")
        assert "has no partitions" in refused.err

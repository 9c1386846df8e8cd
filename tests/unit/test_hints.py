"""Hints of ``hoodie-py``: commands that can be pasted, and one remedy for one damage."""

from __future__ import annotations

import json
import pickle
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, HoodieError
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.table import open_table
from hoodie_ds.timeline.commands import changing
from tests.cli_runs import Run, done, run
from tests.golden.golden_tables import unzip_table
from tests.tables import TRIPS, TYPE, TYPES, VERSION, found, trips


def hints(text: str) -> list[list[str]]:
    """The arguments of the commands that a message names."""
    return [shlex.split(one)[1:] for one in re.findall("`(hoodie-py [^`]*)`", text)]


def pasted(text: str, *words: str) -> Run:
    """A run of the only command that a message names."""
    (command,) = {tuple(one) for one in hints(text)}
    return run(*command, *words)


def damages(path: Path) -> list[dict[str, str]]:
    """What `hoodie-py verify` finds."""
    return list(run("verify", path, "--json").json["findings"])


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A table of Hudi's with a pending compaction."""
    return unzip_table("v6_mor_compaction_requested", tmp_path)


def edit(path: Path, line: str) -> None:
    """Add a line to a table's properties, whose checksum is of its name alone."""
    with (path / ".hoodie/hoodie.properties").open("a") as file:
        file.write(f"{line}\n")


@pytest.mark.parametrize(
    ("name", "pattern", "service", "body"),
    [
        ("v6_mor_compaction_requested", "*.compaction.requested", "compact", b""),
        ("v6_mor_compaction_inflight", "*.compaction.requested", "compact", b""),
        ("v6_mor_compaction_inflight", "*.compaction.requested", "compact", b"Obj"),
        ("v9_cow_clustering_requested", "*.clustering.requested", "cluster", b""),
        ("v9_cow_clustering_requested", "*.clustering.requested", "cluster", b"Obj"),
    ],
)
def test_a_damaged_plan_is_given_up(
    name: str, pattern: str, service: str, body: bytes, tmp_path: Path
) -> None:
    path = unzip_table(name, tmp_path)
    columns = HoodieTable(path).schema.names[5:]
    rows = HoodieTable(path).read(columns=columns).sort_by("id")
    (requested,) = (path / ".hoodie").rglob(pattern)
    requested.write_bytes(body)
    time = requested.name.partition(".")[0]
    is_built_on = any(f"_{time}.log." in file.name for file in path.rglob(".*"))
    rollback = f"`hoodie-py rollback {path} {time}`"
    remedy = "restore it from a copy"
    remedy += "" if is_built_on else f", or give the plan up with {rollback}: no row is lost"
    (damage,) = damages(path)
    assert (damage["where"], damage["remedy"]) == (requested.relative_to(path).as_posix(), remedy)
    assert remedy in run(service, path, "--yes").err
    assert remedy in done("plan", path, "--json").out
    with pytest.raises(HoodieError, match=re.escape(remedy)):
        HoodieTable(path).upsert(rows)
    if is_built_on:
        assert "let it be executed" in run("rollback", path, time, "--yes").err
        return
    assert pasted(remedy, "--yes").code == 0
    assert not damages(path)
    assert HoodieTable(path).read(columns=columns).sort_by("id") == rows
    HoodieTable(path).upsert(rows)


def test_hints_at_a_metadata_table_say_that_it_may_go(planned: Path) -> None:
    edit(planned, "hoodie.table.metadata.partitions=files,expr_index_fare")
    assert "metadata table" in run("compact", planned, "--dry-run").err
    assert pasted(done("plan", planned).out, "--dry-run").code == 0
    commands = {tuple(one) for one in hints(done("show", planned).out)}
    assert sorted(one[0] for one in commands) == ["compact", "metadata"]
    for one in commands:
        assert run(*one, "--dry-run").code == 0


def test_hints_of_reads_at_a_metadata_table_say_that_it_may_go(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = HoodieTable(path, TRIPS)
    for ts in (1, 2):
        table.upsert(trips(("a", "oslo", ts, 1.0), ("b", "rome", ts, 1.0)))
    edit(path, "hoodie.table.metadata.partitions=files,expr_index_fare")
    option = ["--conf", "hoodie.metadata.enable=false"]
    first, last = (commit.time for commit in table.timeline.commits)
    for file in (path / "rome").glob(f"*_{last}.parquet"):
        file.unlink()
    assert hints(run("read", path).err) == [["restore", str(path), first, *option]]
    shutil.rmtree(path / "oslo")
    assert ["delete-partition", str(path), "oslo", *option] in hints(run("read", path).err)


@pytest.mark.parametrize(("name", "drops"), [("rollback", False), ("upgrade", True)])
def test_a_hint_drops_no_metadata_table_that_is_kept(
    tmp_path: Path, name: str, drops: bool
) -> None:
    HoodieTable(tmp_path, TRIPS).upsert(trips(("a", "oslo", 1, 1.0)))
    edit(tmp_path, "hoodie.table.metadata.partitions=files")
    table = open_table(LocalStorage(str(tmp_path)))
    assert ("metadata.enable" in table.command(name)) is drops
    assert changing(table.storage, name) == table.command(name)


def test_hints_keep_the_options_of_the_command_line(planned: Path, tmp_path: Path) -> None:
    props = tmp_path / "o.properties"
    props.write_text("hoodie.py.read.verify.checksums=true\n")
    conf = "hoodie.parquet.max.file.size=1000 "
    given = ["--props", str(props), "--conf", conf]
    for told in (done("plan", planned, *given).out, done("show", planned, *given).out):
        (command,) = hints(told)
        assert command == ["compact", *given[:3], conf.strip(), str(planned)]
    (row,) = done("plan", planned, *given, "--json").json
    assert hints(row["remedy"]) == [command]
    ended = run("read", planned, "--as-of", "20200101000000000", *given)
    assert hints(ended.err) == [["commits", *command[1:]]]


def test_hints_keep_no_secret(planned: Path) -> None:
    option = "hoodie.py.storage.option"
    given = ["endpoint_url=http://host:9000", "key=hush", "url=http://me:hush@host/?sig=hush"]
    words = [word for one in given for word in ("--storage-option", one)]
    told = done("plan", planned, *words, "--conf", f"{option}.secret=hush").out
    assert "hush" not in told
    assert "(*** is not shown: give it again, or set HOODIE_PY_STORAGE_OPTION)" in told
    shown = ["--conf", f"{option}.secret=***", "--storage-option", given[0],
             "--storage-option", "key=***", "--storage-option", "url=***"]  # fmt: skip
    assert hints(told) == [["compact", *shown, str(planned)]]
    assert hints(run("plan", planned, env={"HOODIE_PY_STORAGE_OPTION": "key=hush"}).out) == [
        ["compact", str(planned)]
    ]


@pytest.mark.parametrize("key", ["hoodie.py.storage.option", "hoodie.py.storage.option."])
def test_a_storage_option_without_a_name_is_refused_without_its_value(
    key: str, planned: Path
) -> None:
    ended = run("show", planned, "--conf", f"{key}=hush")
    assert ended.code == 2
    assert f"'{key}' = '***' is refused: a name is missing behind it" in ended.err


@pytest.fixture(params=[(kind, version) for kind in TYPES for version in "69"], ids="-".join)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    """Two commits to two partitions, each with one row."""
    kind, version = request.param
    table = HoodieTable(tmp_path / "t", {**TRIPS, TYPE: kind, VERSION: version})
    for ts in (1, 2):
        table.upsert(trips(("a", "o*", ts, 1.0), ("b", "rome", ts, 2.0)))
    return table


def test_a_partition_that_is_gone_is_given_up_by_what_all_messages_name(
    table: HoodieTable, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    shutil.rmtree(path / "o*")
    shown, (first, *others) = done("show", path).out, damages(path)
    assert {one["remedy"] for one in others} <= {first["remedy"]}
    assert "restore its partition from a copy" in first["remedy"]
    for ended in (run("read", path), run("rollback", path, "--dry-run")):
        assert (ended.code, "a clean took it" in ended.err) == (1, False)
        assert hints(ended.err) == hints(first["remedy"])
    assert hints(first["remedy"]) == [["delete-partition", str(path), "--exact", "o*"]]
    assert hints(shown)[0] == hints(first["remedy"])[0]
    with pytest.raises(CorruptFileError, match="delete-partition"):
        table.upsert(trips(("a", "o*", 3, 1.0)))
    assert "1 partition, 1 file group" in pasted(first["remedy"], "--dry-run").out
    assert pasted(first["remedy"], "--yes").code == 0
    assert damages(path) == []
    assert found(table) == [("b", "rome", 2, 2.0)]


def test_a_file_that_only_a_savepoint_keeps_is_given_up_by_its_deletion(
    table: HoodieTable, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    time = table.savepoint().time
    shutil.rmtree(path / "o*")
    (first,) = {one["remedy"] for one in damages(path)}
    assert pasted(first, "--yes").code == 0
    lost = damages(path)
    (message,), (second,) = ({one[key] for one in lost} for key in ("message", "remedy"))
    assert message == f"savepoint {time} names the file, and it is not there"
    assert hints(second) == [["savepoint", str(path), time, "--delete"]]
    ended = run("read", path, "--as-of", time)
    assert (ended.code, hints(ended.err)) == (1, [])
    assert "restore it from a copy, or choose a later instant" in ended.err
    assert pasted(second, "--yes").code == 0
    assert damages(path) == []
    assert found(table) == [("b", "rome", 2, 2.0)]


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten commits of a table of version 9, most of them archived."""
    path = tmp_path_factory.mktemp("archived") / "t"
    options = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4",
               "hoodie.clean.commits.retained": "2"}  # fmt: skip
    table = HoodieTable(path, {**TRIPS, VERSION: "9", **options})
    for ts in range(10):
        table.upsert(trips(("a", "oslo", ts, 1.0)))
        table.clean()
        table.archive()
    return path


@pytest.mark.parametrize("damage", [b"", b"PAR1", None])
@pytest.mark.parametrize("name", ["*.parquet", "manifest_", "_version_"])
def test_a_damaged_file_of_the_archive_is_to_be_restored(
    name: str, damage: bytes | None, archived: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    shutil.copytree(archived, path)
    folder = path / ".hoodie/timeline/history"
    newest = (folder / "_version_").read_text()
    file = next(folder.glob(f"manifest_{newest}" if name == "manifest_" else name))
    file.unlink()
    if damage is not None:
        file.write_bytes(damage)
    (found,) = damages(path)
    assert found["kind"] == "damaged-instant"
    assert f".hoodie/timeline/history/{file.name}" in f"{found['where']}: {found['message']}"
    if name == "_version_":
        assert found["remedy"] == f"restore it from a copy, or write {newest} into it"
        file.write_text(newest)
        assert damages(path) == []
        return
    assert found["remedy"] == "restore it from a copy"
    ended = run("timeline", path, "--all")
    assert ended.code == 1
    assert f"{found['message']}; {found['remedy']}" in ended.err


@pytest.mark.parametrize("newest", [False, True])
def test_an_empty_decision_is_named_and_may_be_deleted(
    newest: bool, table: HoodieTable, tmp_path: Path
) -> None:
    path, rows = tmp_path / "t", found(table)
    first, *_, last = sorted((path / ".hoodie/.locks/decisions").iterdir())
    lost = last if newest else first
    lost.write_bytes(b"")
    stray = path / f"rome/00000000-0_0-0-0_{'9' * 17}.parquet"
    stray.touch()
    if newest:
        with pytest.raises(CorruptFileError) as refused:
            HoodieTable(path).upsert(trips(("a", "o*", 3, 1.0)))
    else:
        with pytest.raises(CorruptFileError) as refused:
            HoodieTable(path).inspect.plans()
    (damage,) = damages(path)
    stray.unlink()
    assert damage["where"] == str(lost.relative_to(path))
    assert str(refused.value) == f"{damage['message']}; {damage['remedy']}"
    assert damage["message"].startswith(str(lost))
    assert "restore it from a copy, or " in damage["remedy"]
    assert ("while no process writes" in damage["remedy"]) == newest
    lost.unlink()
    assert damages(path) == []
    assert found(HoodieTable(path)) == rows
    HoodieTable(path).upsert(trips(("a", "o*", 3, 1.0)))
    assert damages(path) == []


def test_a_file_that_is_missing_or_cut_is_told_with_its_commit(
    table: HoodieTable, tmp_path: Path
) -> None:
    commit = table.timeline.commits[-1]
    for partition in ("o*", "rome"):
        newest = max((tmp_path / "t" / partition).glob("*_*"), key=lambda p: p.stat().st_mtime_ns)
        data = newest.read_bytes()
        newest.unlink()
        if partition == "rome":
            newest.write_bytes(data[:-4])
    told = sorted((one["kind"], one["message"]) for one in damages(tmp_path / "t"))
    name = f"{commit.action.value} {commit.time}"
    assert told == [
        ("missing-file", f"{name} names the file, and it is not there"),
        ("wrong-size", f"it has {len(data) - 4:,} bytes, and {len(data):,} when {name} wrote it"),
    ]


@pytest.mark.parametrize("version", ["6", "9"])
def test_an_instant_without_a_byte_is_shown_as_verify_has_it(version: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = HoodieTable(path, {**TRIPS, VERSION: version})
    for ts in (1, 2, 3):
        table.upsert(trips(("a", "oslo", ts, 1.0)))
    table.savepoint()
    table.rollback(table.upsert(trips(("a", "oslo", 4, 1.0))).instant_time)
    table.clean({"hoodie.clean.commits.retained": "1"})
    assert "look at" not in done("show", path).out
    for action in ("savepoint", "rollback", "clean"):
        (file,) = (path / ".hoodie").rglob(f"*.{action}")
        file.write_bytes(b"")
    told = {f"look at: {one['where']}: {one['message']}; {one['remedy']}" for one in damages(path)}
    assert len(told) == 3
    assert told == {line for line in done("show", path).lines if line.startswith("look at")}


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("at", [1, 2])
def test_show_names_an_empty_commit_and_shows_the_rest(
    at: int, version: str, tmp_path: Path
) -> None:
    table = HoodieTable(tmp_path / "written", {**TRIPS, VERSION: version})
    for ts in (1, 2, 3):
        table.upsert(trips(("a", "oslo", ts, 1.0)))
    path = tmp_path / "t"  # of which this process has read no commit
    shutil.copytree(tmp_path / "written", path)
    commit = table.timeline.commits[at]
    files = (path / ".hoodie").rglob(f"{commit.time}*.{commit.action.value}")
    (name,) = [file.relative_to(path) for file in files]
    (path / name).write_bytes(b"")
    lines = [line for line in done("show", path).lines if line.startswith("look at")]
    remedy = (
        "restore it from a copy, or delete it and give its rows up by "
        f"`hoodie-py rollback {path} {commit.time}`"
    )
    assert lines[1] == f"look at: {name}: the file is empty; {remedy}"
    assert [one["remedy"] for one in damages(path)] == [remedy]
    with pytest.raises(CorruptFileError) as refused:
        HoodieTable(path).read()
    assert str(refused.value) == f"{path / name} is empty; {remedy}"
    hidden = "files" if at == 1 else "files and columns"
    assert lines[0].startswith(f"look at: its {hidden} are not shown: {path / name} is empty; ")
    shown = done("show", path, "--json").json
    assert (shown["commits"], shown["latest"]) == (3, table.timeline.commits[-1].time)
    assert bool(shown["columns"]) == (at == 1)
    for words in ([], ["--no-verify"]):
        page = tmp_path / "page.html"
        assert run("report", path, "--output", page, *words).code == 0
        assert f"commits are not all shown: {path / name} is empty" in page.read_text()
    (path / name).unlink()
    assert pasted(remedy, "--yes").code == 0
    assert {one["kind"] for one in damages(path)} <= {"orphan"}
    assert found(HoodieTable(path)) == [("a", "oslo", 3 if at == 1 else 2, 1.0)]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_write_all_of_whose_files_on_the_timeline_are_gone_is_shown(
    version: str, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table = HoodieTable(path, {**TRIPS, VERSION: version})
    for ts in (1, 2, 3):
        table.upsert(trips(("a", "oslo", ts, 1.0)))
    time = table.timeline.commits[1].time
    folder = path / ".hoodie" if version == "6" else path / ".hoodie/timeline"
    for file in folder.glob(f"{time}*"):
        file.unlink()
    (damage,) = damages(path)
    told = f"{damage['message']}; {damage['remedy']}"
    assert f"look at: write {time} is lost: {told}" in done("show", path).lines
    (row,) = done("plan", path, "--json").json
    assert (row["time"], row["state"], row["remedy"]) == (time, "lost", told)


@pytest.mark.parametrize("content", [None, b"", b"hoodie.table.name=trips\n"])
def test_properties_that_are_lost_or_damaged_have_one_remedy(
    content: bytes | None, table: HoodieTable, tmp_path: Path
) -> None:
    lost = tmp_path / "t/.hoodie/hoodie.properties"
    lost.unlink()
    if content is not None:
        lost.write_bytes(content)
    told = run("show", tmp_path / "t").err
    assert str(lost) in told
    assert "; remove nothing, and restore it from a copy, or put there that of a new " in told
    assert hints(told) == []


def test_an_empty_savepoint_is_given_up_by_its_deletion(table: HoodieTable, tmp_path: Path) -> None:
    path, time = tmp_path / "t", table.savepoint().time
    (file,) = (path / ".hoodie").rglob(f"{time}*.savepoint")
    file.write_bytes(b"")
    (damage,) = damages(path)
    assert hints(damage["remedy"]) == [["savepoint", str(path), time, "--delete"]]
    assert damage["remedy"] in done("show", path).out
    assert pasted(damage["remedy"], "--yes").code == 0
    assert damages(path) == []


@pytest.mark.parametrize("left", [0, 0.5])
def test_a_file_that_is_cut_off_has_the_remedy_of_a_missing_one(
    table: HoodieTable, tmp_path: Path, left: float
) -> None:
    path, first = tmp_path / "t", table.timeline.commits[0].time
    cut = max((path / "rome").glob("*_*"), key=lambda file: file.stat().st_mtime_ns)
    cut.write_bytes(cut.read_bytes()[: int(cut.stat().st_size * left)])
    (damage,) = damages(path)
    assert hints(damage["remedy"]) == [["restore", str(path), first]]
    with pytest.raises(CorruptFileError) as refused:
        HoodieTable(path).read()
    assert damage["remedy"] in str(refused.value)


def test_a_write_that_reads_a_damaged_file_names_the_remedy_that_verify_does(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t"
    table = HoodieTable(path, TRIPS)
    for ts in (1, 2):
        table.upsert(trips(("b", "rome", ts, 2.0)))
    first, last = (commit.time for commit in table.timeline.commits)
    (file,) = (path / "rome").glob(f"*_{last}.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    (damage,) = damages(path)
    assert hints(damage["remedy"]) == [["restore", str(path), first]]
    with pytest.raises(CorruptFileError) as refused:
        table.upsert(trips(("b", "rome", 3, 2.0)))
    sent = pickle.loads(pickle.dumps(refused.value))  # as from a task to the driver
    assert (str(sent), sent.remedy) == (str(refused.value), damage["remedy"])
    assert str(sent) == f"{damage['message']}; {damage['remedy']}"


def test_a_missing_file_of_an_older_commit_is_mended_by_the_restore_that_all_messages_name(
    table: HoodieTable, tmp_path: Path
) -> None:
    path, first = tmp_path / "t", table.timeline.commits[0].time
    newest = max((path / "rome").glob("*_*"), key=lambda file: file.stat().st_mtime_ns)
    table.upsert(trips(("a", "o*", 3, 1.0)))
    newest.unlink()
    (damage,) = damages(path)
    assert hints(damage["remedy"]) == [["restore", str(path), first]]
    with pytest.raises(CorruptFileError) as refused:
        table.read()
    assert damage["remedy"] in str(refused.value)
    assert pasted(damage["remedy"], "--yes").code == 0
    assert damages(path) == []
    assert found(table) == [("a", "o*", 1, 1.0), ("b", "rome", 1, 2.0)]


def test_no_restore_is_named_for_a_missing_file_of_the_first_commit(tmp_path: Path) -> None:
    path = tmp_path / "t"
    HoodieTable(path, TRIPS).upsert(trips(*((key, "rome", 1, 1.0) for key in "abcdefgh")))
    lost, _ = (path / "rome").glob("*.parquet")
    lost.unlink()
    (damage,) = damages(path)
    assert "to a commit before the one that wrote it" in damage["remedy"]
    assert hints(damage["remedy"]) == []


def test_properties_that_were_lost_are_made_anew_and_nothing_is_removed(
    table: HoodieTable, tmp_path: Path
) -> None:
    rows, lost = found(table), tmp_path / "t/.hoodie/hoodie.properties"
    given = table.properties.raw
    lost.unlink()
    told = run("show", tmp_path / "t").err
    assert "remove nothing, and restore it from a copy" in told
    options = {**TRIPS, TYPE: given["hoodie.table.type"], VERSION: given["hoodie.table.version"]}
    HoodieTable(tmp_path / "other", options).upsert(trips(("x", "rome", 1, 1.0)))
    shutil.copy(tmp_path / "other/.hoodie/hoodie.properties", lost)
    assert found(table) == rows
    assert damages(tmp_path / "t") == []


def test_a_creation_that_was_interrupted_may_be_removed(tmp_path: Path) -> None:
    (tmp_path / ".hoodie/.aux").mkdir(parents=True)
    (tmp_path / ".hoodie/.aux/x").touch()
    told = run("show", tmp_path).err
    assert f"or remove {tmp_path}/.hoodie if nothing was ever written" in told


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_lost_base_file_of_a_compaction_is_written_again_from_its_log_files(
    version: str, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table = HoodieTable(path, {**TRIPS, TYPE: "MERGE_ON_READ", VERSION: version})
    for ts in (1, 2):
        table.upsert(trips(("a", "oslo", ts, 1.0), ("b", "rome", ts, 2.0)))
    table.compact()
    compaction = table.timeline.commits[-1].time
    for ts in range(3, 25):  # until a summary has the files of the compaction
        table.upsert(trips(("a", "oslo", ts, 3.0)))
    (lost,) = (path / "oslo").glob(f"*_{compaction}.parquet")
    lost.unlink()
    (damage,) = damages(path)
    with pytest.raises(CorruptFileError) as refused:
        table.read()
    assert damage["remedy"] in str(refused.value)
    shutil.copytree(path, tmp_path / "u")
    merged = min(file.name for file in (path / "oslo").glob(".*.log.*"))
    (tmp_path / "u/oslo" / merged).unlink()
    assert [hints(one["remedy"])[0][0] for one in damages(tmp_path / "u")] == ["restore"]

    named = re.search(r"delete (\S*)", damage["remedy"])
    assert named is not None
    (path / named[1]).unlink()
    (command,) = hints(damage["remedy"])
    for words in ([*command, "--yes"], ["verify", str(path)]):  # which cache no commit
        subprocess.run([sys.executable, "-m", "hoodie_ds.cli", *words], check=True)
    read = [sys.executable, "-m", "hoodie_ds.cli", "read", str(path), "--json"]
    rows = json.loads(subprocess.run(read, check=True, capture_output=True).stdout)
    assert sorted((row["id"], row["ts"]) for row in rows) == [("a", 24), ("b", 2)]

"""Commands that look into a table, by what they print."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.cli_runs import done, run
from tests.golden.golden_tables import unzip_table
from tests.tables import TRIPS, TYPE, tree, trips

WRITER = "hoodie.datasource.write.streaming.checkpoint.identifier"
BATCH = "hoodie.datasource.write.batch.identifier"


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    """Two numbered batches: a is updated, and c comes in another partition."""
    table = HoodieTable(tmp_path / "t", {**TRIPS, TYPE: "MERGE_ON_READ"})
    table.upsert(trips(("a", "oslo", 1, 1.0), ("b", "oslo", 1, 2.0)), {WRITER: "w", BATCH: "0"})
    table.upsert(trips(("a", "oslo", 2, 9.5), ("c", "rome", 2, 3.0)), {WRITER: "w", BATCH: "1"})
    return table


@pytest.fixture
def path(table: HoodieTable, tmp_path: Path) -> Path:
    return tmp_path / "t"


def test_nothing_is_changed(path: Path) -> None:
    before = tree(path)
    for command in ("show", "timeline", "commits", "files", "schema", "read", "plan"):
        done(command, path)
    done("trace", path, "a")
    done("locate", path, "a")
    done("diff", path, HoodieTable(path).timeline.commits[0].time)
    assert tree(path) == before


def test_a_query_in_sql(path: Path) -> None:
    query = "SELECT city, sum(fare) AS fares FROM t GROUP BY city ORDER BY city"
    cells = [line.split() for line in done("sql", query, path).lines]
    assert cells == [["city", "fares"], ["oslo", "11.5"], ["rome", "3.0"]]
    assert json.loads(done("sql", "SELECT max(ts) AS ts FROM t", path, "--json").out) == [{"ts": 2}]
    first = HoodieTable(path).timeline.commits[0].time
    assert done("sql", "SELECT count(*) AS n FROM t", path, "--as-of", first).lines[1:] == ["2"]
    refused = run("sql", "DROP TABLE t", path)
    assert (refused.code, "write one SELECT" in refused.err) == (2, True)


def test_the_table_at_a_glance(path: Path) -> None:
    lines = done("--width", "80", "show", path).lines
    told = dict(line.split("  ", 1) for line in lines if line[0] != " ")
    told = {name: text.strip() for name, text in told.items()}
    assert told["table"] == "trips"
    assert told["type"].startswith("MERGE_ON_READ, version")
    assert (told["record key"], told["partitioned by"], told["ordered by"]) == ("id", "city", "ts")
    assert told["index"] == "BUCKET, 2 buckets"
    assert told["partitions"].startswith("2, ")
    found = done("show", path, "--json").json
    assert found["columns"][0] == {"name": "id", "type": "string"}
    assert found["commits"] == 2
    assert "hoodie.table.name" in done("show", path, "--properties").out


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize(
    "command",
    [["timeline"], ["commits"], ["files"], ["files", "--groups"], ["schema", "--history"],
     ["read", "--meta"], ["trace", "a"], ["locate", "a"]],
    ids=" ".join,
)  # fmt: skip
def test_tables_fit_the_terminal(command: list[str], width: int, path: Path) -> None:
    name, *rest = command
    lines = done("--width", str(width), name, path, *rest).out.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= width
    # The heads and every short cell are whole.
    assert "\N{HORIZONTAL ELLIPSIS}" not in "".join(lines) or width == 80


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_a_narrow_terminal_has_the_times_of_commits_whole(
    width: int, path: Path, table: HoodieTable
) -> None:
    newest = table.overwrite(trips(("c", "oslo", 3, 1.0))).instant_time
    head, first, *_ = done("--width", str(width), "commits", path).lines
    assert first.split()[0] == newest
    if width >= 60:  # what does not fit is left out, and nothing is cut
        assert first.split()[1] == "INSERT_OVERWRITE_TABLE"
        known = {"time", "operation", "inserted", "updated", "deleted", "files", "bytes",
                 "amplification", "rows", "written", "partitions", "replaced", "groups", "query",
                 "batch", "archived"}  # fmt: skip
        assert known.issuperset(head.split())


def test_the_timeline_and_the_commits(path: Path, table: HoodieTable) -> None:
    first, second = (instant.time for instant in table.timeline.commits)
    found = done("timeline", path, "--json").json
    assert [(row["time"], row["action"], row["state"]) for row in found] == [
        (second, "deltacommit", "completed"),
        (first, "deltacommit", "completed"),
    ]
    newest = done("commits", path, "--json", "--limit", "1").json
    assert [(c["time"], c["operation"], c["query"], c["batch"]) for c in newest] == [
        (second, "UPSERT", "w", 1)
    ]
    assert newest[0]["rows_in"] == 2
    assert done("timeline", path, "--state", "inflight").out == ""
    assert "the first 1 are shown" in done("timeline", path, "--limit", "1").err
    assert len(done("timeline", path, "--all").lines) == 3


def test_the_archive_is_part_of_the_timeline(tmp_path: Path) -> None:
    for name in ("v6_cow_archived", "v9_cow_archived"):
        path = unzip_table(name, tmp_path)
        every = done("timeline", path, "--all", "--json").json
        active = done("timeline", path, "--active", "--all", "--json").json
        assert [row for row in every if not row["archived"]] == active
        archived = [row for row in every if row["archived"]]
        assert archived
        assert all(row["duration_ms"] > 0 for row in archived)
        assert any(row["archived"] for row in done("commits", path, "--all", "--json").json)


def test_files_of_partitions_and_of_groups(path: Path) -> None:
    found = done("files", path, "--json").json
    assert [row["partition"] for row in found] == ["oslo", "rome"]
    groups = done("files", path, "--groups", "--json").json
    assert len(groups) == sum(row["file_groups"] for row in found)
    one = done("files", path, "--partition", "rome", "--json").json
    assert {row["partition"] for row in one} == {"rome"}
    none = run("files", path, "--partition", "rom")
    there = "Error: there is no partition 'rom'; there are 'oslo', 'rome'\n"
    assert (none.code, none.out, none.err) == (2, "", there)
    sizes = {p.name: p.stat().st_size for p in path.rglob("*.parquet") if ".hoodie" not in p.parts}
    assert sum(row["base_bytes"] for row in found) == sum(sizes.values())


def test_columns_and_their_history(path: Path, table: HoodieTable) -> None:
    rows = trips(("d", "rome", 3, 1.0))
    table.upsert(rows.append_column("tip", [[2]]))
    assert [c["name"] for c in done("schema", path, "--json").json] == [*TRIPS_COLUMNS, "tip"]
    history = done("schema", path, "--history", "--json").json
    assert [change["added"] for change in history] == [TRIPS_COLUMNS, ["tip"]]


TRIPS_COLUMNS = ["id", "city", "ts", "fare"]


def test_read_prints_rows(path: Path, table: HoodieTable) -> None:
    first = table.timeline.commits[0].time
    every = done("read", path, "--json").json
    assert sorted(row["id"] for row in every) == ["a", "b", "c"]
    assert list(every[0]) == TRIPS_COLUMNS
    dear = done("read", path, "--where", "fare >= 3", "--where", "city = oslo", "--json").json
    assert [(row["id"], row["fare"]) for row in dear] == [("a", 9.5)]
    past = done("read", path, "--as-of", first, "--columns", "id, fare", "--json").json
    assert sorted(map(tuple, map(dict.values, past))) == [("a", 1.0), ("b", 2.0)]
    day = f"{first[:4]}-{first[4:6]}-{first[6:8]}"
    clock = f"{first[8:10]}:{first[10:12]}:{first[12:14]}.{first[14:]}"
    at = done("read", path, "--as-of", f"{day} {clock}", "--columns", "id, fare", "--json").json
    assert at == past
    assert done("read", path, "--as-of", day, "--json").json == []  # as it was when the day began
    assert done("diff", path, f"{day} {clock}").out == done("diff", path, first).out
    assert "_hoodie_record_key" in done("read", path, "--meta", "--json").json[0]
    assert len(done("read", path, "--limit", "1", "--json").json) == 1
    assert done("read", path, "--where", "id = z").out == ""


def test_a_key_is_located_and_traced(path: Path, table: HoodieTable) -> None:
    first, second = (instant.time for instant in table.timeline.commits)
    (found,) = done("locate", path, "a", "--json").json
    assert (found["partition"], found["commit_time"], found["row"]["fare"]) == ("oslo", second, 9.5)
    events = done("trace", path, "a", "--json").json
    assert [(e["time"], e["what"], e["query"], e["batch"], e["row"]["fare"]) for e in events] == [
        (first, "inserted", "w", 0, 1.0),
        (second, "updated", "w", 1, 9.5),
    ]
    table.delete(trips(("a", "oslo", 3, None)).select(["id", "city", "ts"]))
    last = done("trace", path, "a", "--json").json[-1]
    assert (last["what"], last["operation"], last["row"]) == ("deleted", "DELETE", None)
    gone = run("locate", path, "a")
    assert (gone.code, gone.out, gone.err) == (1, "", "Error: no row has the key 'a'\n")
    assert run("trace", path, "zz").code == 1
    assert done("locate", path, "b", "--partition", "oslo", "--json").json
    other = run("locate", path, "b", "--partition", "rome")
    assert (other.code, other.err) == (1, "Error: no row has the key 'b' in the partition 'rome'\n")


def test_copies_of_a_key_in_two_partitions_are_distinguished(
    path: Path, table: HoodieTable
) -> None:
    table.upsert(trips(("a", "rome", 3, 3.0)))
    table.delete(trips(("a", "oslo", 4, None)).select(["id", "city", "ts"]))
    table.upsert(trips(("a", "rome", 5, 5.0)))
    events = done("trace", path, "a", "--json").json
    assert [(one["partition"], one["what"]) for one in events[2:]] == [
        ("rome", "inserted"),
        ("oslo", "deleted"),
        ("rome", "updated"),
    ]


def test_rows_that_changed_between_two_instants(path: Path, table: HoodieTable) -> None:
    first, second = (instant.time for instant in table.timeline.commits)
    ended = done("diff", path, first, second, "--json")
    assert [(row["change"], row["id"], row["fare"]) for row in ended.json] == [
        ("update_before", "a", 1.0),
        ("update_after", "a", 9.5),
        ("insert", "c", 3.0),
    ]
    assert ended.err == "1 inserted, 1 updated, 0 deleted\n"
    assert done("diff", path, second).lines == ["0 inserted, 0 updated, 0 deleted"]


def test_pending_instants_are_shown_with_their_remedies(tmp_path: Path) -> None:
    path = unzip_table("v6_mor_compaction_requested", tmp_path)
    (found,) = done("plan", path, "--json").json
    assert (found["service"], found["state"]) == ("compaction", "requested")
    assert f"`hoodie-py compact {path}`" in found["remedy"]
    assert found["file_groups"] > 0
    assert "compaction" in done("show", path).out
    path = unzip_table("v9_cow_clustering_requested", tmp_path)
    assert [row["service"] for row in done("plan", path, "--json").json] == ["clustering"]
    path = unzip_table("v6_mor_failed_open", tmp_path)
    assert [row["service"] for row in done("plan", path, "--json").json] == ["write"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "{path}/none"], 1, "holds no Hudi table"),
        (["show", "{path}", "--conf", "hoodie.nonsense=1"], 2, "unknown option"),
        (["show", "{path}", "--conf", "secret"], 2, "write KEY=VALUE"),
        (["show"], 2, "Missing argument 'PATH'"),
        (["timeline", "{path}", "--action", "dance"], 2, "give one of commit"),
        (["read", "{path}", "--as-of", "20200101000000000"], 1, "is no completed write"),
        (["read", "{path}", "--columns", "id,nope"], 2, "nope is no column; there are"),
        (["read", "{path}", "--where", "nope = 1"], 2, "is no column"),
        (["read", "{path}", "--where", "ts = x"], 2, "is no value of type int64"),
    ],
)
def test_errors_print_one_line(arguments: list[str], code: int, said: str, path: Path) -> None:
    ended = run(*(argument.format(path=path) for argument in arguments))
    assert ended.code == code
    assert said in ended.err.splitlines()[-1]
    assert "secret" not in ended.err


def test_options_come_from_the_environment_too(path: Path, tmp_path: Path) -> None:
    bad = run("show", path, env={"HOODIE_PY_CONF": "hoodie.nonsense=1"})
    assert (bad.code, "hoodie.nonsense" in bad.err) == (2, True)
    props = tmp_path / "o.properties"
    props.write_text("hoodie.nonsense=1\n")
    assert run("show", path, "--props", props).code == 2
    assert run("show", path, env={"HOODIE_PY_STORAGE_OPTION": "x"}).code == 2
    assert len(run("timeline", path, env={"COLUMNS": "40"}).lines[0]) <= 40


def test_control_characters_of_a_table_are_escaped(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path / "t", TRIPS)
    table.upsert(trips(("\x1b[31ma", "oslo", 1, 1.0)))
    assert "\x1b" not in done("read", tmp_path / "t").out
    assert json.loads(done("read", tmp_path / "t", "--json").out)[0]["id"] == "\x1b[31ma"


def on_a_terminal(width: int, *command: object) -> str:
    """What a command shows on a terminal of so many columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    script = "import sys; from hoodie_ds.cli.commands import table; table()"
    # Of the size of its terminal a command asks the terminal itself.
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "CI")}
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, command)],
        stdin=theirs, stdout=theirs, stderr=theirs,
        env={**environment, "TERM": "xterm-256color"}, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # once the other side is closed
        while piece := os.read(ours, 1 << 16):
            shown += piece
    os.close(ours)
    assert process.wait() == 0, shown
    return shown.decode()


@pytest.mark.parametrize("width", [80, 200])
def test_on_a_terminal_tables_fit_and_long_work_shows_progress(width: int, path: Path) -> None:
    shown = on_a_terminal(width, "commits", path)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    lines = plain.replace("\r", "").splitlines()
    assert max(map(len, lines)) <= width
    assert max(map(len, lines)) > width // 2
    assert "\x1b[" in shown  # its heads are bold there
    checked = on_a_terminal(width, "verify", path)
    assert "checking" in checked
    assert re.search(r"\d:\d\d:\d\d|-:--:--", checked)  # the time that is left
    assert "0 damages" in checked


def test_a_notebook_shows_a_table(path: Path, table: HoodieTable, tmp_path: Path) -> None:
    shown = table._repr_html_()
    assert "<table" in shown
    cells = dict(re.findall(r"<td>(.*?)</td><td>(.*?)</td>", shown))
    assert (cells["index"], cells["record_keys"]) == ("BUCKET", "id")
    assert cells["columns"].startswith("id string, ")
    assert "hoodie.table.name = " in cells["properties"]
    assert "savepoints" not in cells  # there are none
    assert int(cells["base_files"]) > 0
    assert not {"files", "partition"} & set(cells)
    nothing = HoodieTable(tmp_path / "<nowhere>")._repr_html_()
    assert "&lt;nowhere&gt;" in nothing
    assert "<nowhere>" not in nothing


def test_null_false_and_empty_text_of_rows_differ(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b", "c"], "ok": [True, False, None], "note": ["", None, "x"]})
    HoodieTable(tmp_path, {"hoodie.table.name": "t"}).insert(rows)
    shown = [line.split() for line in done("read", tmp_path).lines]
    assert shown == [
        ["id", "ok", "note"], ["a", "true"], ["b", "false", "null"], ["c", "null", "x"],
    ]  # fmt: skip


def test_a_notebook_shows_the_files_by_partition(tmp_path: Path) -> None:
    rows = trips(("a", "<b>", 1, 1.0), ("b", "oslo", 1, 2.0))
    HoodieTable(tmp_path, TRIPS).upsert(rows)
    files = HoodieTable(tmp_path).inspect.files()
    shown = files._repr_html_()
    assert "<td>&lt;b&gt;</td>" in shown
    assert shown.count("<tr>") == 3
    assert repr(files) == "<TableFiles: 2 partitions, 2 file groups>"


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_savepoint_does_not_lengthen_its_commit(version: str, tmp_path: Path) -> None:
    """It has the time of the commit, and may be made days later."""
    table = HoodieTable(tmp_path, {**TRIPS, "hoodie.write.table.version": version})
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    (before,) = (row.duration_ms for row in table.inspect.timeline())
    table.savepoint()
    for file in (tmp_path / ".hoodie").rglob("*.savepoint"):
        late = file.stat().st_mtime + 86_400
        os.utime(file, (late, late))
    took = {row.action: row.duration_ms for row in table.inspect.timeline()}
    assert took["commit"] == before
    assert version == "6" or took["savepoint"] is None


def test_columns_that_a_narrow_terminal_has_no_room_for_are_named(path: Path) -> None:
    narrow = done("--width", "60", "commits", path)
    assert "bytes" not in narrow.lines[0]
    assert re.search(r"no room for: .*bytes", narrow.err.replace("\n", " "))
    assert max(map(len, narrow.err.splitlines())) <= 60
    assert not done("--width", "300", "commits", path).err

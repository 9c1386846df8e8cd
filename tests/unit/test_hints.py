"""Hints of ``hoodie-py``: commands that can be pasted, and one remedy for one damage."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli_runs import Run, done, run
from tests.golden.golden_tables import unzip_table


def hints(text: str) -> list[list[str]]:
    """The arguments of the commands that a message names."""
    return [shlex.split(one)[1:] for one in re.findall("`(hoodie-py [^`]*)`", text)]


def pasted(text: str, *words: str) -> Run:
    """A run of the only command that a message names."""
    (command,) = {tuple(one) for one in hints(text)}
    return run(*command, *words)


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A table of Hudi's with a pending compaction."""
    return unzip_table("v6_mor_compaction_requested", tmp_path)


def edit(path: Path, line: str) -> None:
    """Add a line to a table's properties, whose checksum is of its name alone."""
    with (path / ".hoodie/hoodie.properties").open("a") as file:
        file.write(f"{line}\n")


def test_hints_at_a_metadata_table_say_that_it_may_go(planned: Path) -> None:
    edit(planned, "hoodie.table.metadata.partitions=files")
    assert "metadata table" in run("compact", planned, "--dry-run").err
    for told in (done("plan", planned).out, done("show", planned).out):
        assert pasted(told, "--dry-run").code == 0


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

"""The command as a whole: its start, its help, its completion."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.cli.examples import EXAMPLES
from hoodie_ds.cli.main import SECTIONS, main
from tests.cli_runs import done, run
from tests.documents import document
from tests.tables import TRIPS, trips

START = "from hoodie_ds.cli.commands import table; table()"


def test_help_lists_every_command_in_its_section() -> None:
    out = done("--help").out
    for title, commands in SECTIONS.items():
        assert not commands or f"{title}:" in out
        for command in commands:
            assert f"\n  {command.name} " in out
            assert command.name is not None
            assert done(command.name, "--help").out.startswith("Usage: main")
    assert set(main.commands) == {c.name for found in SECTIONS.values() for c in found}


def test_help_has_exit_codes_variables_and_commands_that_can_be_pasted() -> None:
    out = " ".join(done("-h").out.split())
    assert "Exit codes: 0 done 1 refused or failed 2 the command line" in out
    assert "HOODIE_PY_WIDTH" in out
    out = done("compact", "-h").out
    for variable in ("HOODIE_PY_CONF", "HOODIE_PY_PROPS", "HOODIE_PY_STORAGE_OPTION"):
        assert variable in out


@pytest.mark.parametrize("name", sorted(main.commands))
def test_the_help_of_a_command_has_an_example_and_the_exit_codes(name: str) -> None:
    out = done(name, "-h").out
    assert f"\n  Example: {EXAMPLES[name]}\n" in out
    assert "Exit codes: 0 done, 1 refused or failed, 2" in out
    path = str(Path(__file__))  # what a command reads has to be there
    words = shlex.split(EXAMPLES[name])
    assert words[:2] == ["hoodie-py", name]
    given = [path if word.endswith(".csv") else word for word in words[2:]]
    main.commands[name].make_context(name, given)


def test_both_commands_say_their_version() -> None:
    from hoodie_ds.streamer.job import main as streamer

    assert done("--version").out == f"hoodie-py, version {hoodie_ds.__version__}\n"
    said = CliRunner().invoke(streamer, ["--version"]).stdout
    assert said == f"hoodie-streamer, version {hoodie_ds.__version__}\n"


def test_help_imports_neither_arrow_nor_rich() -> None:
    """What a start costs is what it imports."""
    code = (
        "import sys; sys.argv = ['hoodie-py', '--help']\n"
        "from hoodie_ds.cli.commands import table\n"
        "try: table()\n"
        "except SystemExit as ended: assert not ended.code\n"
        "heavy = {'pyarrow', 'numpy', 'rich', 'fsspec', 'fastavro', 'pyspark', 'pandas'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "index", "offered"),
    [("hoodie-py tim", "1", "timeline"), ("hoodie-py show /tmp --prop", "3", "--properties")],
)
def test_the_shell_completes_commands_and_options(words: str, index: str, offered: str) -> None:
    env = {"_HOODIE_PY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": index}
    code = f"import sys; sys.argv = ['hoodie-py']; {START}"
    ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert f"plain,{offered}" in ended.stdout.split()


@pytest.mark.parametrize("module", ["hoodie_ds", "hoodie_ds.cli"])
def test_the_package_runs_as_the_command(module: str) -> None:
    command = [sys.executable, "-m", module, "show", "--help"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Usage: hoodie-py show ")


def test_an_unexpected_error_is_one_line() -> None:
    code = (
        "import hoodie_ds.cli.views as look\n"
        "look.show.callback = lambda **_: 1 / 0\n"
        f"import sys; sys.argv = ['hoodie-py', 'show', '/tmp']; {START}"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: ZeroDivisionError: division by zero; this is a bug")
    assert len(ended.stderr.splitlines()) == 1


def test_operating_system_errors_and_an_interrupt_are_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(error: BaseException) -> click.Command:
        @click.command("fails")
        def command() -> None:
            raise error

        return command

    monkeypatch.setitem(main.commands, "fails", fails(OSError("the disk is on fire")))
    ended = run("fails")
    assert (ended.code, ended.err) == (1, "Error: the disk is on fire\n")
    monkeypatch.setitem(main.commands, "fails", fails(KeyboardInterrupt()))
    assert (run("fails").code, run("fails").err) == (130, "stopped\n")


def test_the_reference_is_that_of_the_commands() -> None:
    from hoodie_ds.cli.reference import with_commands

    page = "docs/reference/commands.md"
    text = document(page)
    assert "<!-- commands -->" in text
    assert with_commands(text) == text, f"python -m hoodie_ds.cli.reference {page}"


@pytest.mark.parametrize("columns", ["0", "7", "wide", ""])
def test_an_impossible_width_of_the_environment_is_ignored(columns: str, tmp_path: Path) -> None:
    """Some shells and containers say 0."""
    HoodieTable(tmp_path, TRIPS).upsert(trips(("a", "oslo", 1, 1.0)))
    told = run("show", tmp_path, env={"COLUMNS": columns})
    assert (told.code, told.out) == (0, run("show", tmp_path, env={"COLUMNS": None}).out)
    wide = run("schema", tmp_path, env={"COLUMNS": "20"})
    assert wide.code == 0
    assert max(map(len, wide.lines)) <= 20

"""The streamer's command line: what it makes of its options, and how it refuses bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hoodie_ds import streamer
from hoodie_ds.datasource.session import SparkJob, summary
from hoodie_ds.errors import CorruptFileError, OptionError

BASE = ["--source-format", "rate", "--checkpoint", "ck"]


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started for input that can be refused before")

    monkeypatch.setattr(SparkJob, "open", refuse)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(streamer.main, [*BASE, *arguments])


def test_properties_then_single_options_then_the_path(tmp_path: Path) -> None:
    props = tmp_path / "my.properties"
    props.write_text("# comment\nhoodie.table.name=a\nhoodie.table.type=merge_on_read\n")
    found = streamer.table_options(str(tmp_path / "t"), props, ["hoodie.table.name = b"])
    assert found == {
        "hoodie.table.name": "b",
        "hoodie.table.type": "merge_on_read",
        "path": str(tmp_path / "t"),
    }


def test_a_local_path_is_made_absolute_and_a_url_is_left_alone() -> None:
    assert streamer.table_options("t", None)["path"] == str(Path.cwd() / "t")
    assert streamer.table_options("memory://t", None)["path"] == "memory://t"
    assert streamer.table_options("file:///t", None)["path"] == "file:///t"


def test_a_value_may_hold_an_equals_sign() -> None:
    assert streamer.pairs("--x", ["a=b=c", " d = "]) == {"a": "b=c", "d": ""}


@pytest.mark.parametrize("text", ["secret", "=secret", " =secret"])
def test_what_is_no_pair_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(OptionError, match="--source-option") as caught:
        streamer.pairs("--source-option", [text])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--target-base-path", "t", "--hoodie-conf", "hoodie.tabel.name=x"], 2, "nearest known"),
        (["--target-base-path", "t", "--hoodie-conf", "no pair"], 2, "--hoodie-conf"),
        (["--target-base-path", " "], 2, "'path'"),
        (["--target-base-path", "t", "--source-schema", "@/none.ddl"], 2, "no such file"),
        (["--target-base-path", "t", "--props", "/none.properties"], 2, "does not exist"),
        (["--target-base-path", "s3://user:password@bucket/t"], 2, "credentials"),
        ([], 2, "--target-base-path"),
    ],
)
def test_bad_input_is_one_clear_line(arguments: list[str], code: int, words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    errors = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert words in errors[0]
    assert "Traceback" not in result.output
    assert "password" not in result.output


def test_a_damaged_file_ends_with_code_1(tmp_path: Path) -> None:
    props = tmp_path / "x.properties"
    props.write_text("hoodie.table.name=\\u00\n")
    with pytest.raises(CorruptFileError):
        streamer.table_options("t", props)
    result = run("--target-base-path", "t", "--props", str(props))
    assert (result.exit_code, str(props) in result.output) == (1, True)


def test_help_says_what_each_option_is() -> None:
    result = CliRunner().invoke(streamer.main, ["--help"])
    assert result.exit_code == 0
    for option in ("--source-format", "--target-base-path", "--trigger", "--checkpoint"):
        assert option in result.output


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[DATA_SOURCE_ERROR] Failed\nTraceback (most recent call last):\n  File x\n"
            "hoodie_ds.errors.SchemaError: no column 'ts'\n\n\tat org.apache.spark.X",
            "no column 'ts'",
        ),
        (
            "An error occurred while calling o1.x.\n: org.apache.spark.SparkException: bad master\n"
            "\tat org.apache.spark.X",
            "bad master",
        ),
        ("[PATH_NOT_FOUND] Path does not exist: /x.\nJVM stacktrace:\n...", None),
    ],
)
def test_an_error_of_spark_becomes_one_line(text: str, line: str | None) -> None:
    assert summary(text) == (line or text.partition("\n")[0])

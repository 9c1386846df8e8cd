"""The streamer's command line: what it makes of its options, and how it refuses bad ones."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from hoodie_ds import HoodieTable
from hoodie_ds.datasource.ddl import ddl_fault
from hoodie_ds.datasource.session import BatchProgress, SparkJob, StreamJob, summary
from hoodie_ds.errors import CorruptFileError, OptionError
from hoodie_ds.streamer import job as streamer
from hoodie_ds.streamer.checks import check_source, parse_trigger

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
def test_an_argument_that_is_no_pair_is_refused_without_repeating_it(text: str) -> None:
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trigger", "soon"], "'--trigger' = 'soon' is refused: write available-now"),
        (["--trigger", "10"], "write available-now, or an interval"),
        (["--trigger", "continuous 1 second"], "no rows in continuous mode"),
        (["--source-format", "json", "--source-schema", "id BIGINT"], "'--source-path' is not set"),
        (["--source-format", "CSV", "--source-path", "{}"], "'--source-schema' is not set"),
        (["--source-format", "text", "--source-path", "{}/none"], "nothing at this path"),
        (["--source-format", "text", "--source-path", "file://{}/*.txt"], "nothing at this path"),
        (["--source-option", "path={}/none"], "nothing at this path"),
        (["--source-schema", "id BIGNIT"], "column 'id' has the type 'bignit', which Spark"),
        (["--source-schema", "id"], "column 'id' has the type ''"),
        (["--checkpoint", " "], "'--checkpoint' = ' ' is refused: name a folder"),
        (["--checkpoint", "{}/a.file"], "this is a file"),
        (["--checkpoint", "{}/t/"], "this is the table"),
    ],
)
def test_options_that_spark_refuses_late_are_refused_early(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    (tmp_path / "a.file").touch()
    given = [text.replace("{}", str(tmp_path)) for text in arguments]
    result = run("--target-base-path", str(tmp_path / "t"), *given)
    assert (result.exit_code, len(result.output.splitlines())) == (2, 1), result.output
    assert words in result.output


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("availableNow", "available-now"),
        ("AVAILABLE_NOW", "available-now"),
        ("available-now", "available-now"),
        ("availableNow=true", "available-now"),
        ("Once", "available-now"),
        ("10 seconds", "10 seconds"),
        ("0 seconds", "0 seconds"),
        ("Interval 1 MINUTE 30.5 Seconds", "Interval 1 MINUTE 30.5 Seconds"),
        ("processingTime='10 seconds'", "10 seconds"),
        ("ProcessingTime: 1 hour", "1 hour"),
        ("processing-time(2 days)", "2 days"),
    ],
)
def test_triggers_in_the_spelling_of_spark(text: str, trigger: str) -> None:
    assert parse_trigger(text) == trigger


def test_sources_that_only_spark_knows_pass(tmp_path: Path) -> None:
    (tmp_path / "1.json").touch()

    def job(kind: str, path: str | None, schema: str | None = None) -> StreamJob:
        return StreamJob(kind, {"path": "/t"}, "s3://b/ck", {}, schema, path)

    for path in (str(tmp_path), f"file:{tmp_path}/*.json", "s3://b/in", "hdfs:///in"):
        check_source(job("json", path, "id INT"), {}, starts_spark=True)
    check_source(job("parquet", "/on/hdfs"), {}, starts_spark=False)
    check_source(
        job("parquet", "/on/hdfs"),
        {"spark.hadoop.fs.defaultFS": "x", "spark.sql.streaming.schemaInference": "True"},
        starts_spark=True,
    )
    check_source(job("kafka", None), {}, starts_spark=True)


@pytest.mark.parametrize(
    ("ddl", "fault"),
    [
        ("id BIGINT, `a b` STRING NOT NULL COMMENT 'x, y', n: Decimal(10, 2)", None),
        (
            "m MAP<STRING, ARRAY<STRUCT<a: INT, b DOUBLE COMMENT 'c'>>>, e STRUCT<>, v VARCHAR(3)",
            None,
        ),
        (
            "i INTERVAL DAY TO SECOND, t TIMESTAMP_NTZ, s STRING COLLATE UTF8_LCASE DEFAULT 'x'",
            None,
        ),
        ("", "a column's name is expected, not 'nothing'"),
        ("id INT,", "not 'nothing'"),
        ("id INT; b INT", "there is ';' after a type"),
        ("id INT name STRING", "there is 'name' after a type; a comma may be missing"),
        ("id DECIMAL(10, 2", "a bracket is not closed by )"),
        ("a ARRAY", "the array of column 'a' needs its types in <>"),
        ("a ARRAY<INT", "the array of column 'a' is not closed by >"),
        ("a MAP<INT>", "the map of column 'a' needs two types"),
        ("a STRUCT<b INT", "',' or '>' is expected after column 'b'"),
        ("a INT>", "',' is expected after column 'a', not '>'"),
        ("a ARRAY<TEXT>", "column 'a' has the type 'text', which Spark does not know"),
    ],
)
def test_schemas_in_ddl(ddl: str, fault: str | None) -> None:
    found = ddl_fault(ddl)
    assert found == fault if fault is None else fault in (found or "")


class Session:
    """A Spark session during which Ctrl-C is pressed: while it starts, or in its stream."""

    def __init__(self, when: str) -> None:
        self.when = when
        self.told: list[str] = []

    def open(self, *_: object) -> Session:
        if self.when == "start":
            os.kill(os.getpid(), signal.SIGINT)
        return self

    def run(self, *_: object) -> Iterator[list[BatchProgress]]:
        try:
            for number in range(3):
                if self.when == "stream" and number == 1:
                    os.kill(os.getpid(), signal.SIGINT)
                    self.told.append("in the middle of a call")
                yield [BatchProgress(number, 10, 1.0)]
        finally:
            self.told.append("query stopped")

    def stop(self) -> None:
        self.told.append("session stopped")


@pytest.mark.parametrize(
    ("when", "told"),
    [
        ("start", ["session stopped"]),
        ("stream", ["in the middle of a call", "query stopped", "session stopped"]),
    ],
)
def test_ctrl_c_waits_for_the_jvm_and_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, when: str, told: list[str]
) -> None:
    session = Session(when)
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(SparkJob, "open", session.open)
    result = run("--target-base-path", str(tmp_path / "t"))
    assert (result.exit_code, session.told) == (130, told)
    assert "Traceback" not in result.output
    if when == "stream":
        assert result.output.splitlines()[0].startswith("batch 0: 10 rows")
        assert result.output.splitlines()[1:] == [
            "stopped; the next run resumes from the checkpoint"
        ]
    assert signal.getsignal(signal.SIGINT) == before


def test_an_earlier_batch_is_not_reported_with_the_instant_of_a_later_one(tmp_path: Path) -> None:
    class TwoAtOnce(Session):
        def run(self, *_: object) -> Iterator[list[BatchProgress]]:
            yield [BatchProgress(0, 5, 1.0), BatchProgress(1, 7, 1.0)]

    shown = io.StringIO()
    console = Console(file=shown, width=200)
    job = StreamJob("rate", {"path": str(tmp_path / "t")}, str(tmp_path / "ck"))
    assert streamer.run_stream(cast(SparkJob, TwoAtOnce("never")), job, console) == 2
    assert shown.getvalue().splitlines() == [
        "batch 0: 5 rows in 1.0 s (5 rows/s), 5 in all",
        "batch 1: 7 rows in 1.0 s (7 rows/s), 12 in all, now at instant none",
    ]


def test_options_of_the_source_may_be_among_those_of_the_table(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    options = {"path": place, "bootstrap.servers": "b:9092"}
    assert not streamer._has_keys(options)
    keyed = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    HoodieTable(place, keyed).upsert(pa.table({"id": [1]}))
    assert streamer._has_keys(options)


def test_a_second_ctrl_c_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    with streamer.Interrupt().waits():
        os.kill(os.getpid(), signal.SIGINT)
        assert codes == []
        os.kill(os.getpid(), signal.SIGINT)
    assert codes == [130]


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


def test_a_source_without_its_package_names_the_package() -> None:
    text = "[KAFKA_DATA_SOURCE_NOT_ENABLED] Failed to find data source: kafka. SQLSTATE: 42K02"
    assert "spark.jars.packages" in summary(text)
    assert "conf/kafka.properties" in summary(text)

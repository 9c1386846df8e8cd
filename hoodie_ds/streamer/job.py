"""A job that streams any Spark source into a Hudi table: the counterpart of Hudi Streamer.

Run it as ``spark-submit hoodie_ds/streamer/job.py ...``, or as ``hoodie-streamer ...`` without
``spark-submit``. It refuses what it can before Spark starts.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import click
from rich.console import Console
from rich.status import Status

import hoodie_ds
from hoodie_ds.config.base_path import scheme_of
from hoodie_ds.config.properties.java_properties import parse_properties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.datasource.session import AVAILABLE_NOW, BatchProgress, SparkJob, StreamJob
from hoodie_ds.errors import HoodieError, OptionError, TableNotFoundError
from hoodie_ds.storage.connect import storage_to_read
from hoodie_ds.streamer.checks import check_source, parse_trigger
from hoodie_ds.streamer.timeline_report import TimelineReport
from hoodie_ds.table.table import open_table

_POLL_SECONDS: Final = 1
STOPPED: Final = 130
"""Exit code of a program that Ctrl-C ends."""


class Interrupt:
    """A Ctrl-C deferred until it does no harm, which is between two calls of the JVM.

    In the middle of one, Py4J logs the stack, and PySpark's own handler makes another call. A
    second Ctrl-C ends the process at once; the table holds only whole batches.
    """

    def __init__(self) -> None:
        self._came = False

    @contextmanager
    def waits(self) -> Iterator[None]:
        """Defer it for as long as the context lasts."""
        before = signal.getsignal(signal.SIGINT)
        self.watch()
        try:
            yield
        finally:
            if _in_main_thread():
                signal.signal(signal.SIGINT, before)

    def watch(self) -> None:
        """Install the handler, maybe again: PySpark installs its own when it starts."""
        if _in_main_thread():
            signal.signal(signal.SIGINT, self._note)

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if it came."""
        if self._came:
            raise KeyboardInterrupt

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self._came:
            os._exit(STOPPED)
        self._came = True


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def run_stream(session: SparkJob, job: StreamJob, console: Console) -> int:
    """Run a stream, show a line for each batch, and return how many batches had rows.

    If the stream fails (`HoodieError`) or the user stops it, the table holds only whole batches.
    """
    timeline = TimelineReport.of(job.table_options)
    interrupt = Interrupt()
    batches = rows = 0
    with (
        interrupt.waits(),
        closing(session.run(job, _POLL_SECONDS)) as progress,
        _live(console) as status,
    ):
        try:
            for finished in progress:
                interrupt.check()
                if not finished and not console.is_terminal:
                    continue
                instant = timeline.latest()
                for batch in finished:
                    batches, rows = batches + 1, rows + batch.rows
                    line = f"{_line(batch)}, {rows:,} in all"
                    if batch is finished[-1]:  # the instant may be none of an earlier batch's
                        line += f", now at instant {instant}"
                    console.print(line, highlight=False, soft_wrap=True)
                status.update(f"batches: {batches:,}, rows: {rows:,}, instant: {instant}")
        except KeyboardInterrupt:
            console.print("stopped; the next run resumes from the checkpoint")
            raise
    if not batches:
        console.print("no new input")
    return batches


def _live(console: Console) -> Status:
    return Status("starting", console=console if console.is_terminal else Console(quiet=True))


def _line(batch: BatchProgress) -> str:
    speed = f"{batch.rows / max(batch.seconds, 0.001):,.0f} rows/s"
    return f"batch {batch.batch_id}: {batch.rows:,} rows in {batch.seconds:.1f} s ({speed})"


def table_options(path: str, props: Path | None, given: Iterable[str] = ()) -> dict[str, str]:
    """Return the options of a table: a properties file, then ``key=value`` strings, which win.

    A local `path` is made absolute, as Spark's workers have other working folders.
    """
    options = {} if props is None else parse_properties(props.read_bytes(), str(props))
    local = scheme_of(path) == "file" and not path.lower().startswith("file:")
    where = str(Path(path).absolute()) if local and path.strip() else path
    options = {**options, **pairs("--hoodie-conf", given), "path": where}
    WriteOptions.parse(options)
    return options


def pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    """Return ``key=value`` strings as a mapping; `OptionError` names `option` for any other."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            # The message omits the string: a part of it may be a password.
            raise OptionError(option, "***", "write key=value")
        found[key.strip()] = value.strip()
    return found


def _has_keys(options: dict[str, str]) -> bool:
    """Whether the table has record keys, by the options or by the existing table."""
    parsed = WriteOptions.parse(options)
    if parsed.record_key_fields:
        return True
    try:
        # not a HoodieTable: a properties file may hold keys of the source, such as Kafka's
        return bool(open_table(storage_to_read(parsed)).properties.record_key_fields)
    except TableNotFoundError:
        return False


def _ddl(text: str | None) -> str | None:
    if text is None or not text.startswith("@"):
        return text
    file = Path(text[1:])
    if not file.is_file():
        raise OptionError("--source-schema", text, "there is no such file")
    return file.read_text("utf-8")


class _BadOption(click.ClickException):
    """An option is at fault."""

    exit_code = 2


def fail(error: HoodieError) -> click.ClickException:
    """Return a console error of one line for one of ours.

    The exit code is 2 if an option is at fault, and 1 otherwise.
    """
    kind = _BadOption if isinstance(error, OptionError) else click.ClickException
    return kind(" ".join(str(error).split()))


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PAIR = "key=value"


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 failed, 2 the command line or an option is wrong, 130 stopped by "
    "Ctrl-C after a whole batch. Run it again with the same checkpoint to resume.",
)
@click.version_option(hoodie_ds.__version__, prog_name="hoodie-streamer")
@click.option("--source-format", required=True, help="Streaming source: parquet, kafka, rate, ...")
@click.option("--source-option", multiple=True, metavar=_PAIR, help="Option of the source.")
@click.option("--source-schema", help="Columns of the source as Spark DDL, or @FILE with it.")
@click.option("--source-path", help="Path, for a source that reads one.")
@click.option("--target-base-path", required=True, help="Base path of the table.")
@click.option("--props", type=_FILE, help="Properties file of hoodie.* options.")
@click.option("--hoodie-conf", multiple=True, metavar=_PAIR, help="One option; wins over --props.")
@click.option(
    "--trigger",
    default=AVAILABLE_NOW,
    show_default=True,
    help="available-now: read what is there and end. Or an interval, '10 seconds'. "
    "Spark's own spellings work, too: availableNow, once.",
)
@click.option("--checkpoint", required=True, help="Folder of the stream's checkpoint.")
@click.option(
    "--shuffle/--no-shuffle",
    default=None,
    help="Send each row to the task of its file group; by default if the table has record keys.",
)
@click.option("--master", help="Where to run without spark-submit; local[*] by default.")
@click.option("--remote", help="Spark Connect server to run on, sc://HOST:PORT.")
@click.option("--spark-conf", multiple=True, metavar=_PAIR, help="Setting of Spark.")
def main(
    source_format: str,
    source_option: tuple[str, ...],
    source_schema: str | None,
    source_path: str | None,
    target_base_path: str,
    props: Path | None,
    hoodie_conf: tuple[str, ...],
    trigger: str,
    checkpoint: str,
    shuffle: bool | None,
    master: str | None,
    remote: str | None,
    spark_conf: tuple[str, ...],
) -> None:
    """Stream a source into a Hudi table, exactly once.

    Options, schema, source, trigger and checkpoint are checked before Spark starts.
    """
    console = Console()
    try:
        options = table_options(target_base_path, props, hoodie_conf)
        job = StreamJob(
            source_format,
            options,
            checkpoint,
            pairs("--source-option", source_option),
            _ddl(source_schema),
            source_path,
            parse_trigger(trigger),
            _has_keys(options) if shuffle is None else shuffle,
        )
        # Spark's own progress bars would write over ours.
        quiet = {} if remote else {"spark.ui.showConsoleProgress": "false"}
        settings = {**quiet, **pairs("--spark-conf", spark_conf)}
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        check_source(job, settings, starts_spark=not submitted and remote is None)
        interrupt = Interrupt()
        with interrupt.waits():
            session = SparkJob.open("hoodie-streamer", os.environ, master, remote, settings)
            try:
                interrupt.watch()
                interrupt.check()
                run_stream(session, job, console)
            finally:
                session.stop()
        console.print(TimelineReport.of(options).table())
    except HoodieError as error:
        raise fail(error) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(STOPPED) from None


if __name__ == "__main__":
    main()

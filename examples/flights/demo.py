"""A year of flights, streamed into a Hudi table and checked three ways.

The table is compared, row by row, with an independent computation over the input, as three readers
give it: our Spark reader, `HoodieTable` without Spark, and the ``hudi`` package (hudi-rs).
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Final

import click
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from examples.flights import events as flights
from hoodie_ds.api.hoodie_table import HoodieTable
from hoodie_ds.config.enums import TableType
from hoodie_ds.datasource.session import SparkJob, StreamJob
from hoodie_ds.errors import HoodieError
from hoodie_ds.streamer.job import STOPPED, fail, run_stream, table_options
from hoodie_ds.streamer.timeline_report import TimelineReport

_PROPS: Final = Path(__file__).with_name("flights.properties")
_DDL_TYPES: Final = {
    pa.int32(): "INT",
    pa.string(): "STRING",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
}
_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    "spark.driver.host": "localhost",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def run_demo(folder: Path, table_type: TableType, master: str, console: Console) -> None:
    """Stream the flights, show the table and compare it.

    Parameters
    ----------
    folder : Path
        For input, tables and checkpoints; what is there already is gone on from.
    table_type : TableType
        Each has a table of its own in the folder.
    master : str
        Where Spark runs.
    console : Console
        Shows progress and outcome.

    Raises
    ------
    HoodieError
        Something failed, or one of the three readings is not equal to the independent computation.
    """
    folder = folder.absolute()
    events, table = folder / "events", folder / table_type.value.lower()
    console.print(f"{flights.FILES} files of flight events in {events}")
    flights.write_events(events)
    options = demo_options(str(table), table_type)
    session = SparkJob.open("flights", os.environ, master, settings=_SETTINGS)
    try:
        run_stream(session, _job(events, options, f"{table}-checkpoint"), console)
        by_spark = session.read(str(table))
    finally:
        session.stop()
    by_us = HoodieTable(str(table)).read()
    console.print(TimelineReport.of(options).table())
    console.print(cross_table(flights.by_partition_and_status(by_us), "Rows by month and status"))
    readings = {
        "hoodie_ds.read(spark, path)": by_spark,
        "HoodieTable(path).read()": by_us,
        "the hudi package (hudi-rs)": _read_with_hudi_rs(table),
    }
    _compare(readings, flights.expected(events), console)


def demo_options(path: str, table_type: TableType) -> dict[str, str]:
    """Return the options of the flights table: those of ``flights.properties``, and its type.

    Parameters
    ----------
    path : str
        The table's base path.
    table_type : TableType
        Takes precedence over the type in the file.
    """
    kind = f"hoodie.datasource.write.table.type={table_type.value}"
    return table_options(path, _PROPS, [kind])


def _job(events: Path, options: dict[str, str], checkpoint: str) -> StreamJob:
    columns = ", ".join(f"{field.name} {_DDL_TYPES[field.type]}" for field in flights.EVENTS)
    one_by_one = {"maxFilesPerTrigger": "1"}
    return StreamJob("parquet", options, checkpoint, one_by_one, columns, str(events))


def _compare(readings: dict[str, pa.Table], wanted: pa.Table, console: Console) -> None:
    console.print(f"Compared with {wanted.num_rows:,} rows that DuckDB computes from the input:")
    different = []
    for name, rows in readings.items():
        found = difference(rows, wanted)
        console.print(f"  {name}: {found or 'equal, row by row'}", highlight=False)
        different += [name] if found else []
    if different:
        raise HoodieError(f"the table is not what it should be, as read by {', '.join(different)}")


def difference(rows: pa.Table, wanted: pa.Table) -> str:
    """Say how a reading of the flights table differs from the rows wanted; nothing if it does not.

    Parameters
    ----------
    rows : pyarrow.Table
        With the columns of `flights.EVENTS` among others, in any order.
    wanted : pyarrow.Table
        Schema `flights.EVENTS`, sorted by key.
    """
    missing = [name for name in flights.EVENTS.names if name not in rows.column_names]
    if missing:
        return f"it lacks the columns {', '.join(missing)}"
    if rows.num_rows != wanted.num_rows:
        return f"it has {rows.num_rows:,} rows"
    found = rows.select(flights.EVENTS.names).cast(flights.EVENTS)
    found = found.sort_by([(name, "ascending") for name in flights.KEY])
    if found.equals(wanted):
        return ""
    # Row by row, as something is wrong and a person wants to see where.
    both = zip(found.to_pylist(), wanted.to_pylist(), strict=True)
    unequal = itertools.islice(((row, want) for row, want in both if row != want), 1)
    return "; ".join(f"it has {row} in place of {want}" for row, want in unequal)


def _read_with_hudi_rs(path: Path) -> pa.Table:
    from hudi import HudiTableBuilder

    table = HudiTableBuilder.from_base_uri(str(path)).build()
    return pa.Table.from_batches([pa.record_batch(batch) for batch in table.read()])


def cross_table(counts: pa.Table, title: str) -> Table:
    """Show counts with a line for each first value and a column for each second one.

    Parameters
    ----------
    counts : pyarrow.Table
        Three columns: what makes the lines, what makes the columns, how many.
    title : str
        Above the table.
    """
    lines, columns, numbers = (column.to_pylist() for column in counts.itercolumns())
    found = dict(zip(zip(lines, columns, strict=True), numbers, strict=True))
    shown = Table(counts.column_names[0], title=title, title_justify="left")
    across = sorted(set(columns))
    for name in across:
        shown.add_column(str(name), justify="right")
    for line in sorted(set(lines)):
        shown.add_row(str(line), *(f"{found.get((line, name), 0):,}" for name in across))
    return shown


@click.command()
@click.option(
    "--table-type",
    type=click.Choice([kind.value for kind in TableType], case_sensitive=False),
    default=TableType.MERGE_ON_READ.value,
    show_default=True,
    help="How updates are stored.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".work/flights"),
    show_default=True,
    help="For input, tables and checkpoints.",
)
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
def main(table_type: str, folder: Path, master: str) -> None:
    """Stream a year of flights into a Hudi table and compare the table with the input.

    A second run resumes from the checkpoint: it finds nothing new, and compares again.
    """
    try:
        run_demo(folder, TableType(table_type.upper()), master, Console())
    except HoodieError as error:
        raise fail(error) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(STOPPED) from None


if __name__ == "__main__":
    main()

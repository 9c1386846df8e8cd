"""Files in the hybrid calendar: the dates that Spark reads of them, by its own table of shifts."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader

LEGACY = {"org.apache.spark.version": "3.5.8", "org.apache.spark.legacyDateTime": ""}
UTC = {**LEGACY, "org.apache.spark.timeZone": "UTC"}
DAY = 86_400_000_000
MICROS = pa.timestamp("us", "UTC")

SWITCHES = [
    *(-719164, -682945, -646420, -609895, -536845, -500320, -463795),
    *(-390745, -354220, -317695, -244645, -208120, -171595, -141427),
]
"""Days from which on Julian and Gregorian day numbers differ by two days, one, none and so on."""
SHIFTS = [2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, 0]

RAW, RIGHT = -171_655, -171_664
"""1 January 1500 by either calendar."""


def file(rows: pa.Table, footers: dict[str, str], **more: Any) -> io.BytesIO:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, rows.schema, store_schema=False, **more) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(footers)
    return sink


def read(rows: pa.Table, footers: dict[str, str], **more: Any) -> pa.Table:
    return BaseFileReader(file(rows, footers, **more), rows.schema, "f.parquet").read()


def days(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32()).cast(pa.date32())


def test_each_day_since_the_year_1_moves_as_spark_moves_it() -> None:
    """Spark's `RebaseDateTime` has the shifts in a table."""
    raw = np.arange(SWITCHES[0], SWITCHES[-1] + 2)
    shifts = np.array(SHIFTS)[np.searchsorted(SWITCHES, raw, side="right") - 1]
    found = read(pa.table({"d": pa.array(raw, pa.int32()).cast(pa.date32())}), LEGACY)["d"]
    assert np.array_equal(found.cast(pa.int32()).to_numpy(), raw + shifts)


@pytest.mark.parametrize(
    ("footers", "expected"),
    [
        (LEGACY, RIGHT),
        ({"org.apache.spark.version": "2.4.8"}, RIGHT),
        ({"org.apache.spark.version": "3.0.0"}, RAW),
        ({"org.apache.spark.version": "3.5.8", "org.apache.spark.legacyINT96": ""}, RAW),
        ({"org.apache.spark.legacyDateTime": ""}, RAW),  # without a version, Spark does not look
        ({}, RAW),
    ],
)
def test_the_footer_shows_the_calendar(footers: dict[str, str], expected: int) -> None:
    rows = pa.table({"d": days(RAW, None, 18_262)})
    assert read(rows, footers)["d"].combine_chunks().equals(days(expected, None, 18_262))


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_timestamps_keep_their_time_of_day(unit: str) -> None:
    kind, day = pa.timestamp(unit, "UTC"), DAY // (1 if unit == "us" else 1000)
    rows = pa.table({"t": pa.array([RAW * day + 7, None, day - 1, -day], kind)})
    expected = pa.array([RIGHT * day + 7, None, day - 1, -day], kind)
    assert read(rows, UTC)["t"].combine_chunks().equals(expected)


@pytest.mark.parametrize(
    ("footers", "expected"),
    [
        ({"org.apache.spark.version": "3.0.1", "org.apache.spark.timeZone": "UTC"}, RIGHT),
        ({**UTC, "org.apache.spark.legacyINT96": ""}, RIGHT),
        (UTC, RAW),
    ],
)
def test_int96_has_a_calendar_of_its_own(footers: dict[str, str], expected: int) -> None:
    naive = pa.timestamp("us")
    rows = pa.table({"t": pa.array([RAW * DAY + 7], naive)})
    sink = file(rows, footers, use_deprecated_int96_timestamps=True)
    found = BaseFileReader(sink, pa.schema([("t", MICROS)]), "f").read()["t"]
    assert found.combine_chunks().equals(pa.array([expected * DAY + 7], MICROS))


def test_local_timestamps_are_proleptic_in_every_file() -> None:
    rows = pa.table({"t": pa.array([RAW * DAY], pa.timestamp("us"))})
    assert read(rows, UTC).equals(rows)


def test_values_in_structs_lists_and_maps_are_rebased() -> None:
    kind = pa.struct(
        [
            ("d", pa.date32()),
            ("l", pa.list_(pa.date32())),
            ("m", pa.map_(pa.string(), MICROS)),
            ("n", pa.int64()),
        ]
    )

    def rows(day: int) -> pa.Table:
        date = days(day)[0].as_py()
        moment = pa.scalar(day * DAY, MICROS).as_py()
        full = {"d": date, "l": [date, None], "m": [("k", moment)], "n": 1}
        lists: dict[str, Any] = {"d": None, "l": None, "m": None, "n": 2}
        return pa.table({"s": pa.array([full, None, lists, {**full, "l": []}], kind)})

    reader = BaseFileReader(file(rows(RAW), UTC), rows(RAW).schema, "f")
    assert reader.read().equals(rows(RIGHT))
    assert pa.concat_tables(reader.pieces()).equals(rows(RIGHT))


@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_old_timestamps_of_another_zone_are_refused(zone: str | None) -> None:
    footers = LEGACY if zone is None else {**LEGACY, "org.apache.spark.timeZone": zone}
    since_1900 = -25_567 * DAY
    newer = pa.table({"t": pa.array([since_1900], MICROS), "d": days(RIGHT)})
    assert read(newer, footers)["t"].equals(newer["t"])
    older = pa.table({"t": pa.array([since_1900 - 1], MICROS), "d": days(RAW)})
    with pytest.raises(UnsupportedTableError, match=r"f\.parquet: column 't'.*1900"):
        read(older, footers)
    dates = BaseFileReader(file(older, footers), older.schema, "f").read(["d"])["d"]
    assert dates.combine_chunks().equals(days(RIGHT))


def test_statistics_of_the_other_calendar_are_not_believed() -> None:
    rows = pa.table({"d": days(RAW), "n": pa.array([1], pa.int64())})
    reader = BaseFileReader(file(rows, LEGACY), rows.schema, "f")
    assert reader.bounds(0, rows.schema.field("d")) is None
    assert reader.greatest("d") is None
    assert reader.greatest("n") == 1
    assert reader.bounds(0, rows.schema.field("n")) is not None
    plain = BaseFileReader(file(rows, {}), rows.schema, "f")
    assert plain.greatest("d") == RAW

"""Mislabelled timestamps: which of them Hudi's `SchemaRepair` reads by the table's schema."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from hoodie_ds.formats.timestamp_repair import relabelled

MILLIS, MICROS = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
STORED = datetime(1970, 1, 1, 0, 0, 0, 5000, timezone.utc)
MEANT = datetime(1970, 1, 1, 0, 0, 5, 0, timezone.utc)
"""5000 microseconds, which are milliseconds."""
LOCAL_MILLIS, LOCAL_MICROS = pa.timestamp("ms"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("stored", "wanted", "read_as"),
    [
        (MICROS, MILLIS, MILLIS),
        (pa.int64(), LOCAL_MILLIS, LOCAL_MILLIS),
        (pa.int64(), LOCAL_MICROS, LOCAL_MICROS),
        # Hudi repairs none of these.
        (MILLIS, MICROS, MILLIS),
        (pa.int64(), MILLIS, pa.int64()),
        (pa.int32(), LOCAL_MILLIS, pa.int32()),
        (LOCAL_MICROS, LOCAL_MILLIS, LOCAL_MICROS),
        (MICROS, LOCAL_MILLIS, MICROS),
        (LOCAL_MICROS, MILLIS, LOCAL_MICROS),
        (MICROS, pa.int64(), MICROS),
    ],
)
def test_integers_keep_their_value_under_the_label_of_the_table(
    stored: pa.DataType, wanted: pa.DataType, read_as: pa.DataType
) -> None:
    def rows(kind: pa.DataType) -> pa.Table:
        return pa.table({"t": pa.array([5, None], kind), "other": ["x", "y"]})

    assert relabelled(rows(stored), rows(wanted).schema).equals(rows(read_as))


def test_values_in_structs_lists_and_maps_are_relabelled() -> None:
    def nested(kind: pa.DataType) -> pa.DataType:
        return pa.struct(
            [("t", kind), ("l", pa.list_(kind)), ("m", pa.map_(pa.string(), kind)), ("n", MICROS)]
        )

    def value(shown: datetime) -> dict[str, object]:
        return {"t": shown, "l": [shown, None], "m": [("k", shown)], "n": STORED}

    micros = pa.array([None, value(STORED), None, {}], nested(MICROS)).slice(1)
    millis = pa.array([value(MEANT), None, {}], nested(MILLIS))
    found = relabelled(pa.table({"s": micros}), pa.table({"s": millis}).schema)
    assert found.equals(pa.table({"s": millis}))

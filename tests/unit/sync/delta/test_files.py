"""What an action says of a base file, and what it leaves out."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.sync.delta.files import add_action, escaped
from hoodie_ds.testing import MemoryStorage


def told(columns: dict[str, pa.Array], *, statistics: bool = True) -> dict[str, Any]:
    storage, body = MemoryStorage("memory://t"), io.BytesIO()
    pq.write_table(pa.table(columns), body, row_group_size=2, write_statistics=statistics)
    storage.replace("p/f", body.getvalue())
    action = add_action(storage, FileStatus("p/f", 9), columns, changes=True)
    found: dict[str, Any] = json.loads(action["stats"])
    return found


def test_the_least_and_greatest_of_all_row_groups() -> None:
    texts = pa.array(["b", None, "a", "c", None, None])
    assert told({"i": pa.array([3, 1, 2, 9, 5, 4]), "t": texts}) == {
        "numRecords": 6,
        "minValues": {"i": 1, "t": "a"},
        "maxValues": {"i": 9, "t": "c"},
        "nullCount": {"i": 0, "t": 3},
    }


def test_unknown_or_unsupported_statistics_are_left_out() -> None:
    """A long text is not cut: what is cut at its end is not the greatest."""
    short = pa.array(["a", "b"])
    for column in (pa.array(["x" * 200, "a"]), pa.array([1.5, 2.5]), pa.nulls(2, pa.string())):
        # Of all columns nothing is told: deltalake looks for each in whatever is.
        assert told({"t": short, "other": column}) == {"numRecords": 2}
    assert told({"i": pa.array([1])}, statistics=False) == {"numRecords": 1}


def test_a_file_that_is_not_parquet_is_named() -> None:
    storage = MemoryStorage("memory://t")
    storage.replace("p/f", b"no")
    with pytest.raises(CorruptFileError, match="memory://t/p/f cannot be read as Parquet"):
        add_action(storage, FileStatus("p/f", 2), (), changes=True)


def test_paths_are_escaped_as_in_a_url() -> None:
    assert escaped(["city=a b%/ü?.parquet"]) == {"city=a%20b%25/%C3%BC%3F.parquet"}

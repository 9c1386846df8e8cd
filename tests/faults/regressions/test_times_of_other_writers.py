"""What went wrong with times that others wrote: other moments were read, and stored again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds.formats.log.data_block import encode_avro_block
from hoodie_ds.formats.parquet import base_file
from hoodie_ds.formats.parquet.base_file import BaseFileWriter
from hoodie_ds.handles import append_handle
from tests.faults.regressions.test_types_and_schemas import FORMS, one, table, table_of_millis

RAW, RIGHT = date(1500, 1, 10), date(1500, 1, 1)
"""A day in the proleptic calendar whose number is that of the other one in the Julian."""
MICROS, MILLIS = pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")


@pytest.mark.parametrize("form", FORMS)
def test_dates_in_the_hybrid_calendar_were_read_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Spark 2.4 wrote them; the next rewrite then stored the wrong dates for all engines."""
    kind, more = FORMS[form]
    there = table(tmp_path, kind, **{"hoodie.index.type": "BUCKET", **more})

    def rows(**values: date) -> pa.Table:
        return pa.table({"id": list(values), "d": list(values.values())})

    def found(**chosen: Any) -> dict[str, date]:
        return {row["id"]: row["d"] for row in there.read(["id", "d"], **chosen).to_pylist()}

    with monkeypatch.context() as patched:
        patched.setattr(base_file, "_PROLEPTIC_SPARK", "2.4.8")
        there.upsert(rows(a=RAW, b=RAW))
        if kind == "MERGE_ON_READ":  # Avro blocks are proleptic, whoever wrote them
            there.upsert(rows(b=RIGHT if form == "Avro logs" else RAW))
    assert found() == {"a": RIGHT, "b": RIGHT}
    assert found(filter=pc.field("d") <= RIGHT) == {"a": RIGHT, "b": RIGHT}
    there.upsert(rows(c=RIGHT))
    assert found() == {"a": RIGHT, "b": RIGHT, "c": RIGHT}
    if kind == "MERGE_ON_READ":
        there.compact()
        assert found() == {"a": RIGHT, "b": RIGHT, "c": RIGHT}


def mislabelled(rows: pa.Table) -> pa.Table:
    """Rows with milliseconds that are called microseconds."""
    at = rows.column_names.index("at")
    chunks = [chunk.view(MICROS) for chunk in rows.column(at).cast(MILLIS).chunks]
    return rows.set_column(at, "at", pa.chunked_array(chunks, MICROS))


@contextmanager
def mislabelling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let writers of tables with a column ``at`` of milliseconds call them microseconds."""
    made, write = BaseFileWriter.__init__, BaseFileWriter.write

    def label(avro: str) -> str:
        return avro.replace("timestamp-millis", "timestamp-micros")

    def init(self: Any, sink: Any, schema: pa.Schema, avro: str, *args: Any, **kw: Any) -> None:
        at = schema.get_field_index("at")
        held = schema.set(at, schema.field(at).with_type(MICROS))
        made(self, sink, held, label(avro), *args, **kw)

    def encode(rows: pa.Table, avro: str, *args: Any, **kw: Any) -> bytes:
        return encode_avro_block(mislabelled(rows), label(avro), *args, **kw)

    with monkeypatch.context() as patched:
        patched.setattr(BaseFileWriter, "__init__", init)
        patched.setattr(BaseFileWriter, "write", lambda self, rows: write(self, mislabelled(rows)))
        patched.setattr(append_handle, "encode_avro_block", encode)
        yield


@pytest.mark.parametrize("form", FORMS)
def test_milliseconds_that_files_call_microseconds_were_read_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Hudi 0.14 to 1.0 left such files (apache/hudi#14161); its 1.2 reads them by the table."""
    kind, more = FORMS[form]
    there = table_of_millis(
        tmp_path, pa.table({"id": ["0"], "at": one(MILLIS, 1)}), monkeypatch, kind, **more
    )

    def rows(**values: int) -> pa.Table:
        return pa.table({"id": list(values), "at": pa.array(list(values.values()), MILLIS)})

    def found(**chosen: Any) -> dict[str, int]:
        read = there.read(["id", "at"], **chosen)
        assert read.schema.field("at").type == MILLIS
        counts = read["at"].cast(pa.int64()).to_pylist()
        return dict(zip(read["id"].to_pylist(), counts, strict=True))

    old, new = 1_700_000_000_000, 1_700_000_001_001
    with mislabelling(monkeypatch):
        there.upsert(rows(a=old, b=old))
        there.upsert(rows(b=new))
    assert found() == {"0": 1, "a": old, "b": new}
    moment = pa.scalar(old, MILLIS)
    assert found(filter=pc.field("at") == moment) == {"a": old}
    there.upsert(rows(c=old))
    assert found() == {"0": 1, "a": old, "b": new, "c": old}
    if kind == "MERGE_ON_READ":
        there.compact()
        assert found() == {"0": 1, "a": old, "b": new, "c": old}

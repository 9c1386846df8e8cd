"""What went wrong with types, names and bytes of columns: rows doubled, or not read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.limits import Limits
from hoodie_ds.errors import HoodieError, SchemaError
from hoodie_ds.sink import write_checks as plan
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import in_chunks, write_task
from tests.tables import limited, upsert

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def options_of(kind: str = "COPY_ON_WRITE", **more: str) -> dict[str, str]:
    """Options of a table with the key ``id`` in one bucket; further ones by their last words."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": more.pop("key", "id"),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.bucket.index.num.buckets": "1",
    }
    for name in ("partitionpath", "precombine"):
        if name in more:
            options[f"hoodie.datasource.write.{name}.field"] = more.pop(name)
    return {**options, **more}


def table(path: Path, kind: str = "COPY_ON_WRITE", **more: str) -> HoodieTable:
    """A table with those options."""
    return HoodieTable(str(path), options_of(kind, **more))


def one(kind: pa.DataType, value: object) -> pa.Array:
    return pa.array([value], kind)


WIDENED = {
    "int to double": (pa.int32(), 1, pa.float64(), 1.0),
    "float to double": (pa.float32(), 0.1, pa.float64(), 0.1),
    "long to double": (pa.int64(), 2**53 + 1, pa.float64(), 2.0**53),
    "long, found by a double": (pa.float64(), 2.0**53, pa.int64(), 2**53 + 1),
}


@pytest.mark.parametrize("name", WIDENED)
@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_widened_key_column_changed_every_key(tmp_path: Path, name: str, operation: str) -> None:
    stored, value, arriving, same = WIDENED[name]
    there = table(tmp_path)
    there.upsert(pa.table({"id": one(stored, value), "v": ["a"]}))
    before = there.read()
    with pytest.raises(SchemaError, match=f"record key column 'id' is {stored} .* and {arriving} "):
        getattr(there, operation)(pa.table({"id": one(arriving, same), "v": ["b"]}))
    assert there.read().equals(before)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("record key column 's.k'", {"key": "s.k"}),
        ("partition column 'p'", {"partitionpath": "p"}),
        ("ordering column 'ts'", {"precombine": "ts"}),
    ],
)
def test_key_and_ordering_columns_were_widened(
    tmp_path: Path, name: str, options: dict[str, str]
) -> None:
    def rows(kind: pa.DataType) -> pa.Table:
        inner = pa.StructArray.from_arrays([one(kind, 1), one(kind, 1)], ["k", "v"])
        return pa.table({"id": ["x"], "s": inner, "p": one(kind, 1), "ts": one(kind, 1)})

    there = table(tmp_path, **options)
    there.upsert(rows(pa.int32()))
    with pytest.raises(SchemaError, match=f"{name} is int32 .* and double .*'Int32'"):
        there.upsert(rows(pa.float64()))
    there.upsert(rows(pa.int64()))  # the text of a whole number is the same in any width
    assert there.read(["_hoodie_record_key"]).num_rows == 1
    assert there.schema.field("s").type == pa.struct([("k", pa.int64()), ("v", pa.int64())])


@pytest.mark.parametrize("kind", KINDS)
def test_a_float_that_became_a_double_got_digits_that_nobody_wrote(
    tmp_path: Path, kind: str
) -> None:
    """Hudi reads it by way of its string (HUDI-8902), and stores it so with the next rewrite."""
    target = table(tmp_path, kind, **{"hoodie.index.type": "BUCKET"})
    target.upsert(pa.table({"id": ["1", "2"], "v": one(pa.float32(), 0.1).take([0, 0])}))
    if kind == "MERGE_ON_READ":
        target.upsert(pa.table({"id": ["2"], "v": one(pa.float32(), 0.7)}))
    target.upsert(pa.table({"id": ["3"], "v": [0.3]}))
    widened = {"1": 0.1, "2": 0.7 if kind == "MERGE_ON_READ" else 0.1, "3": 0.3}

    def rows(**chosen: Any) -> dict[str, float]:
        return {row["id"]: row["v"] for row in target.read(["id", "v"], **chosen).to_pylist()}

    assert rows() == widened
    assert rows(filter=pc.field("v") <= 0.1).keys() == {k for k, v in widened.items() if v <= 0.1}
    if kind == "MERGE_ON_READ":
        target.compact()
        assert rows() == widened


def test_a_narrower_number_is_a_key_of_a_double_column(tmp_path: Path) -> None:
    there = table(tmp_path)
    for kind, value in ((pa.float64(), 0.5), (pa.float32(), 0.5), (pa.int32(), 2)):
        there.upsert(pa.table({"id": one(kind, value)}))
    keys = there.read(["_hoodie_record_key"]).column(0).to_pylist()
    assert sorted(keys) == ["0.5", "2.0"]


TWINS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "columns of table and batch": ({"name": "a"}, {"Name": "b"}, "'name' and 'Name'"),
    "columns of a batch": ({}, {"name": "a", "NAME": "b"}, "'name' and 'NAME'"),
    "fields of a struct": ({}, {"s": {"a": 1, "A": 2}}, "'s.a' and 's.A'"),
    "fields that come later": ({"s": {"a": 1}}, {"s": {"a": 1, "A": 2}}, "'s.a' and 's.A'"),
    "fields within a list": ({}, {"l": [{"a": 1, "A": 2}]}, r"'l\[\].a' and 'l\[\].A'"),
    "a column of Hudi's": ({}, {"_Hoodie_record_key": "x"}, "'_hoodie_record_key' and"),
}


@pytest.mark.parametrize("name", TWINS)
def test_columns_that_differ_in_case_alone_were_stored(tmp_path: Path, name: str) -> None:
    """Neither Spark nor Hive can read such a table."""
    stored, arriving, message = TWINS[name]
    there = table(tmp_path, **{"hoodie.write.set.null.for.missing.columns": "true"})
    there.upsert(pa.Table.from_pylist([{"id": "1", **stored}]))
    before = there.schema
    with pytest.raises(SchemaError, match=message):
        there.upsert(pa.Table.from_pylist([{"id": "2", **arriving}]))
    assert there.schema == before


def test_a_table_that_has_such_columns_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that another engine, or an earlier release of this library, has made."""
    there = table(tmp_path)
    rows = pa.table({"id": ["1"], "name": ["a"], "namE": ["b"]})
    with monkeypatch.context() as earlier:
        earlier.setattr(plan, "check_case", lambda *_: None)
        there.upsert(rows)
    there.upsert(rows.set_column(2, "namE", [["c"]]))
    assert there.read(["id", "name", "namE"]).to_pylist() == [{"id": "1", "name": "a", "namE": "c"}]
    with pytest.raises(SchemaError, match="'NAME'"):
        there.upsert(rows.append_column("NAME", [["d"]]))


FORMS = {
    "copy-on-write": ("COPY_ON_WRITE", {}),
    "Avro logs": ("MERGE_ON_READ", {"hoodie.logfile.data.block.format": "avro"}),
    "parquet logs": ("MERGE_ON_READ", {"hoodie.logfile.data.block.format": "parquet"}),
}


def text(last: bytes, kind: pa.DataType | None = None) -> pa.Array:
    """Six texts, the last of any bytes; Spark makes such of ``cast(binary as string)``."""
    kind = kind or pa.string()
    width = np.int64 if pa.types.is_large_string(kind) else np.int32
    offsets = np.array([0, 1, 2, 3, 4, 5, 5 + len(last)], width)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"abcde" + last)]
    return pa.Array.from_buffers(kind, 6, buffers)


NO_TEXT = b"\xff\xfe"
EACH = [0, 1, 2, 3, 4, 5, 6]
TEXTS = {
    "text": ("c", text(NO_TEXT)),
    "half of a pair": ("c", text(b"\xed\xa0\x80")),
    "large text": ("c", text(NO_TEXT, pa.large_string())),
    "dictionary": ("c", pa.DictionaryArray.from_arrays(pa.array(EACH[:6]), text(NO_TEXT))),
    "struct": ("c.x", pa.StructArray.from_arrays([text(NO_TEXT)], ["x"])),
    "list": ("c.element", pa.ListArray.from_arrays(EACH, text(NO_TEXT))),
    "map's key": ("c.key", pa.MapArray.from_arrays(EACH, text(NO_TEXT), text(b"f"))),
    "map's value": ("c.value", pa.MapArray.from_arrays(EACH, text(b"f"), text(NO_TEXT))),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TEXTS)
def test_broken_utf8_was_committed_and_never_read_again(
    tmp_path: Path, name: str, form: str
) -> None:
    path, values = TEXTS[name]
    kind, more = FORMS[form]
    ids = pa.array(["0", "1", "2", "3", "4", "5"])
    there = table(tmp_path, kind, **more)
    good = pa.table({"id": ids, "c": values}).slice(0, 5)
    there.upsert(good)
    there.upsert(good)
    before = there.read()
    with pytest.raises(SchemaError, match=f"^row 5 of the batch: column '{path}' .* no.* UTF-8 "):
        there.upsert(pa.table({"id": ids, "c": values}))
    assert there.read().equals(before)
    assert not there.timeline.pending
    there.delete(pa.table({"id": ids, "c": values}))  # of which only the keys are stored
    assert there.read().num_rows == 0


@pytest.mark.parametrize("form", FORMS)
def test_categories_of_polars_were_refused(tmp_path: Path, form: str) -> None:
    kind, more = FORMS[form]
    codes = pa.array([0, 1, None, 0], pa.uint32())
    names = pa.array(["oslo", "rome"], pa.string_view())
    city = pa.DictionaryArray.from_arrays(codes, names)
    blob = pa.DictionaryArray.from_arrays(codes, names.cast(pa.binary_view()))
    inner = pa.StructArray.from_arrays([city], ["name"])
    rows = pa.table({"id": city, "city": city, "blob": blob, "in": inner})
    there = table(tmp_path, kind, **more)
    there.upsert(rows.take([1]))
    there.upsert(rows.slice(0, 2))
    there.delete(rows.select(["id"]).slice(0, 1))
    read = there.read(["id", "city", "blob", "in"])
    assert read.to_pylist() == [
        {"id": "rome", "city": "rome", "blob": b"rome", "in": {"name": "rome"}}
    ]
    assert read.schema.types[1:3] == [pa.string(), pa.binary()]


@pytest.mark.parametrize("options", [{"key": "c"}, {"partitionpath": "c"}, {"precombine": "c"}])
def test_binary_keys_and_ordering_values(tmp_path: Path, options: dict[str, str]) -> None:
    there = table(tmp_path, "MERGE_ON_READ", **options)
    rows = pa.table({"id": ["0", "1", "2", "3", "4", "5"], "c": text(NO_TEXT)})
    for write in (there.upsert, there.insert):
        with pytest.raises(HoodieError, match="row 5 of the batch: column 'c' "):
            write(rows)
    there.upsert(rows.slice(0, 5))
    with pytest.raises(HoodieError, match="row 5 of the batch: column 'c' "):
        there.delete(rows)
    assert there.read().num_rows == 5


def test_the_row_of_a_later_chunk_is_named(tmp_path: Path) -> None:
    limits = Limits(chunk_bytes=1, part_bytes=100)
    ids = [str(i) for i in range(600)]
    values = pa.chunked_array([text(b"f")] * 70 + [text(NO_TEXT)] + [text(b"f")] * 29)
    rows = pa.table({"id": ids, "c": values})
    with pytest.raises(SchemaError, match="row 425 of the batch: column 'c' "):
        upsert(limited(tmp_path, options_of(), limits), rows)
    upsert(limited(tmp_path, options_of(), limits), rows.slice(0, 425))
    assert table(tmp_path).read().num_rows == 425


def raw(kind: pa.DataType, value: int) -> pa.Array:
    """Two values, the second one of which Arrow's own builders would refuse."""
    width = kind.bit_width // 8
    data = (0).to_bytes(width, "little") + value.to_bytes(width, "little")
    return pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(data)])


VALUES = {
    "more digits than the type has": (raw(pa.decimal128(5, 2), 10**6), "no decimal"),
    "seconds beyond what microseconds hold": (raw(pa.timestamp("s", "UTC"), 2**62), "timestamp"),
    "nanoseconds": (raw(pa.timestamp("ns", "UTC"), 1001), "timestamp"),
    "half a day": (raw(pa.date64(), 43_200_000), "date32"),
    "a reference to nothing": (
        pa.DictionaryArray.from_arrays(pa.array([0, 5]), pa.array(["a"]), safe=False),
        "dictionary",
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_that_a_table_cannot_hold(tmp_path: Path, name: str) -> None:
    values, what = VALUES[name]
    there = table(tmp_path)
    with pytest.raises(SchemaError, match=f"row 1 of the batch: column 'c' .*{what}"):
        there.upsert(pa.table({"id": ["a", "b"], "c": values}))
    assert not (tmp_path / ".hoodie").exists()


@pytest.mark.parametrize("levels", [29, 60])
def test_a_column_was_nested_deeper_than_readers_follow(tmp_path: Path, levels: int) -> None:
    kind = pa.int64()
    for _ in range(levels):
        kind = pa.struct([("a", kind)])
    schema = pa.schema([("id", pa.string()), ("deep", kind)])
    with pytest.raises(SchemaError, match="column 'deep' is nested deeper"):
        table(tmp_path).upsert(schema.empty_table())


def test_a_batch_with_over_two_gigabytes_of_strings_was_refused(tmp_path: Path) -> None:
    """As with 2 GiB, which is where an array of text ends, but smaller."""
    texts = ["x" * (i % 300) for i in range(300)]
    rows = pa.table(
        {"id": [str(i) for i in range(300)], "large": pa.array(texts, pa.large_string())}
    )
    coordinator = limited(tmp_path, options_of(), Limits(chunk_bytes=1, part_bytes=1000))
    batch = coordinator.begin(rows.schema)
    seen = in_chunks(batch.plan, rows.to_batches())
    lengths = [sum(map(len, part.column("large").to_pylist())) for part in seen]
    assert sum(lengths) == sum(map(len, texts))
    assert max(lengths) <= 1000
    coordinator.commit([write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)])
    assert table(tmp_path).read(["id", "large"]).to_pylist() == rows.to_pylist()


def test_a_slice_far_back_in_long_text_was_refused(tmp_path: Path) -> None:
    """Its offsets are those of the whole; no page of the gigabytes before it is touched."""
    far = 2**31
    offsets = pa.py_buffer(np.array([far, far + 1, far + 3], np.int64))
    with (tmp_path / "sparse").open("wb+") as file:
        file.truncate(far + 3)
        file.seek(far)
        file.write(b"abc")
    with pa.memory_map(str(tmp_path / "sparse")) as source:
        values = pa.Array.from_buffers(pa.large_string(), 2, [None, offsets, source.read_buffer()])
        there = table(tmp_path / "t")
        there.upsert(pa.table({"id": ["1", "2"], "c": values}))
    assert sorted(there.read(["c"]).column(0).to_pylist()) == ["a", "bc"]


MILLIS = {
    "timestamp-millis": (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
    "local-timestamp-millis": (pa.timestamp("ms"), pa.timestamp("us")),
}


def table_of_millis(
    path: Path, rows: pa.Table, monkeypatch: pytest.MonkeyPatch, kind: str, **more: str
) -> HoodieTable:
    """A table as Flink and Avro sources make it; our own new ones have microseconds."""
    there = table(path, kind, **more)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(plan, "normalise_schema", lambda user, _: user)
        there.upsert(rows)
    return there


def avro_types(path: Path) -> dict[str, object]:
    """Avro types of the columns, without null, as the newest commit has them."""
    newest = max(path.glob(".hoodie/*commit"))
    schema = json.loads(json.loads(newest.read_text())["extraMetadata"]["schema"])
    return {field["name"]: field["type"][1] for field in schema["fields"]}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("logical", MILLIS)
def test_a_key_of_milliseconds_was_taken_for_one_of_microseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logical: str, form: str
) -> None:
    """Hudi's key text is the number that is stored, and so are partition and ordering value."""
    millis, micros = MILLIS[logical]
    kind, more = FORMS[form]

    def rows(unit: pa.DataType, at: int, ts: int, v: str) -> pa.Table:
        inner = pa.StructArray.from_arrays([one(unit, at)], ["at"])
        lists = pa.ListArray.from_arrays([0, 1], one(unit, at))
        columns = {"at": one(unit, at), "p": one(unit, at), "ts": one(unit, ts), "v": [v]}
        return pa.table({**columns, "s": inner, "l": lists})

    at = 1_700_000_000_123
    names = {"key": "at", "partitionpath": "p", "precombine": "ts"}
    there = table_of_millis(
        tmp_path, rows(millis, at, 5, "old"), monkeypatch, kind, **names, **more
    )
    there.upsert(rows(micros, at * 1000, 6000, "new"))
    there.upsert(rows(millis, at, 4, "late"))
    keys = there.read(["_hoodie_record_key", "_hoodie_partition_path", "v"]).to_pylist()
    assert [tuple(row.values()) for row in keys] == [(str(at), str(at), "new")]
    stored = {"type": "long", "logicalType": logical}
    types = avro_types(tmp_path)
    assert [types[name] for name in ("at", "p", "ts")] == [stored] * 3
    assert there.read(["at", "s", "l"]).schema.types == [
        millis,
        pa.struct([("at", millis)]),
        pa.list_(millis),
    ]
    (file, *_) = tmp_path.rglob("*.parquet")
    assert pq.read_schema(file).field("at").type == millis
    with pytest.raises(HoodieError, match=r"row 0 of the batch: column 'at' .* would lose data"):
        there.upsert(rows(micros, at * 1000 + 1, 7000, "x"))
    keyed = rows(millis, at, 5, "").select(["at", "p", "ts"])
    there.delete(keyed)  # older than the row that is stored
    assert there.read().num_rows == 1
    there.delete(keyed.set_column(2, "ts", one(micros, 6000)))
    assert there.read().num_rows == 0


@pytest.mark.parametrize("form", FORMS)
def test_times_of_day_are_kept_where_a_table_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    kind, more = FORMS[form]
    rows = pa.table(
        {"id": ["1"], "a": one(pa.time32("ms"), 1001), "b": one(pa.time64("us"), 1_000_001)}
    )
    there = table_of_millis(tmp_path, rows, monkeypatch, kind, **more)
    coarser = rows.set_column(1, "a", one(pa.time32("s"), 2))
    there.upsert(coarser)
    expected = rows.set_column(1, "a", one(pa.time32("ms"), 2000))
    assert there.read(["id", "a", "b"]).equals(expected)
    assert avro_types(tmp_path)["a"] == {"type": "int", "logicalType": "time-millis"}
    assert avro_types(tmp_path)["b"] == {"type": "long", "logicalType": "time-micros"}
    with pytest.raises(SchemaError, match=r"column 'c' .* which a Hudi table cannot hold"):
        there.upsert(rows.append_column("c", rows.column("a")))


def test_new_columns_have_microseconds(tmp_path: Path) -> None:
    """As those that Spark writes, whatever their unit was."""
    there = table(tmp_path)
    there.upsert(pa.table({"id": ["1"], "at": one(pa.timestamp("ms", "UTC"), 5)}))
    assert there.schema.field("at").type == pa.timestamp("us", "UTC")
    assert avro_types(tmp_path)["at"] == {"type": "long", "logicalType": "timestamp-micros"}


@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_only_a_column_that_log_files_lack_is_read_again(tmp_path: Path, form: str) -> None:
    """The first read of the slice knows how many rows they have by their keys."""
    there = table(tmp_path, KINDS[1], **{"hoodie.logfile.data.block.format": form})
    for keys in ("abc", "ab"):
        there.upsert(pa.table({"id": list(keys)}))
    there.upsert(pa.table({"id": ["c"], "late": [7]}))
    for _ in range(2):
        assert sorted(there.read(["late"])["late"].to_pylist(), key=str) == [7, None, None]
        assert there.count("late is null") == 2

"""What a newcomer's hand meets: rows of any make, paths, results, names and representations."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie_ds
from hoodie_ds import (
    HoodieTable,
    OptionError,
    SchemaError,
    WriteConflictError,
    WriteResult,
    errors,
)
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.testing import MemoryStorage
from tests.tables import ORDERING, TRIPS, TYPE, TYPES, found, trips

ROWS = trips(("a", "x", 1, 1.0), ("b", "y", 1, 2.0))
READ = [("a", "x", 1, 1.0), ("b", "y", 1, 2.0)]


@pytest.fixture
def table() -> HoodieTable:
    return HoodieTable("memory://t", TRIPS, storage=MemoryStorage())


class Stream:
    """As Polars, DuckDB and others hand over tables."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


class Array:
    """As others hand over one record batch."""

    def __init__(self, rows: pa.Table) -> None:
        self.batch = rows.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.batch.__arrow_c_array__(requested_schema)


VIEWS = pa.schema(
    [("id", pa.string_view()), ("city", pa.large_string()), ("ts", pa.int64()), ("fare", "double")]
)
FORMS = {
    "a table": lambda rows: rows,
    "a record batch": lambda rows: rows.combine_chunks().to_batches()[0],
    "a reader": lambda rows: rows.to_reader(max_chunksize=1),
    "a stream": Stream,
    "an array": Array,
    "a frame of pandas": lambda rows: rows.to_pandas(),
    "a sorted frame of pandas": lambda rows: rows.to_pandas().sort_values("fare", ascending=False),
    "a frame with a named index": lambda rows: rows.to_pandas().set_index("id"),
    "a frame with a sorted index of keys": lambda rows: rows.to_pandas().set_index(["city", "id"]),
    "text as Polars has it": lambda rows: Stream(rows.cast(VIEWS)),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_had_to_be_a_table_of_pyarrow(table: HoodieTable, form: str) -> None:
    table.upsert(FORMS[form](ROWS))
    assert found(table) == READ
    assert table.schema.names[5:] == ["id", "city", "ts", "fare"] or "index" in form
    table.delete(FORMS[form](ROWS.slice(0, 1)))
    assert found(table) == READ[1:]


@pytest.mark.parametrize("rows", [None, "a.parquet", [{"id": "a"}], {"id": ["a"]}, ROWS["id"], 7])
def test_objects_that_are_no_rows_are_refused(table: HoodieTable, rows: object) -> None:
    with pytest.raises(SchemaError, match="cannot be read as Arrow data"):
        table.upsert(rows)


def test_a_string_that_is_a_filter_or_an_expression_is_said_to_be_one(table: HoodieTable) -> None:
    with pytest.raises(OptionError, match=r"delete\(where=...\)"):
        table.delete("id = a")
    table.upsert(ROWS)
    with pytest.raises(OptionError, match=r"hoodie_ds.expr\('fare \+ 1'\)"):
        table.update({"fare": "fare + 1"})
    with pytest.raises(OptionError, match=r"\('COLUMN', 'in', \[VALUE, ...\]\)"):
        table.read(filter="id in ('a', 'b')")


def test_a_column_of_mixed_kinds_is_refused_by_name(table: HoodieTable) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(SchemaError, match="fare"):
        table.upsert(pandas.DataFrame({"id": ["a", "b"], "fare": [1.5, "x"]}))


def test_the_index_of_pandas_was_stored_for_good(table: HoodieTable) -> None:
    frame = ROWS.to_pandas()
    table.upsert(pa.Table.from_pandas(frame.iloc[[1, 0]]))
    assert "__index_level_0__" not in table.schema.names
    table.upsert(pa.Table.from_pandas(frame))
    assert found(table) == READ


def test_a_table_that_has_such_a_column_keeps_it(table: HoodieTable) -> None:
    with pytest.MonkeyPatch.context() as patch:  # as earlier releases stored it
        patch.setattr("hoodie_ds.sink.write_checks._PANDAS_INDEX", re.compile("(?!)"))
        table.upsert(pa.Table.from_pandas(ROWS.to_pandas().iloc[[1, 0]]))
    table.upsert(pa.Table.from_pandas(ROWS.to_pandas().iloc[[1, 0]]))
    assert sorted(table.read("__index_level_0__")[0].to_pylist()) == [0, 1]


@pytest.mark.parametrize("kind", TYPES)
def test_writes_returned_nothing(kind: str) -> None:
    table = HoodieTable("memory://t", {**TRIPS, TYPE: kind}, storage=MemoryStorage())
    first = table.upsert(ROWS)
    assert first == WriteResult(table.timeline.commits[-1].time, inserted=2)
    second = table.upsert(trips(("a", "x", 2, 9.0), ("c", "x", 1, 1.0)))
    in_log = kind == "MERGE_ON_READ"
    expected = (0, 2) if in_log and second.updated == 2 else (1, 1)
    assert (second.inserted, second.updated) == expected
    third = table.delete(ROWS.select(["id", "city"]).slice(0, 1))
    assert (third.instant_time, third.deleted) == (table.timeline.commits[-1].time, 1)
    assert repr(third) == (
        f"WriteResult(instant_time='{third.instant_time}', inserted=0, updated=0, deleted=1, "
        "already_committed=False, failed_services=())"
    )


def test_a_write_without_rows_has_no_instant(table: HoodieTable) -> None:
    assert table.upsert(ROWS.slice(0, 0)) == WriteResult()
    assert table.upsert(ROWS.slice(0, 0), {"hoodie.allow.empty.commit": "true"}) == WriteResult(
        table.timeline.commits[-1].time
    )


def test_a_replay_is_reported_in_the_result(table: HoodieTable) -> None:
    writer = "hoodie.datasource.write.streaming.checkpoint.identifier"
    once = {writer: "w", "hoodie.datasource.write.batch.identifier": "1"}
    assert not table.insert(ROWS, once).already_committed
    assert table.insert(ROWS, once) == WriteResult(already_committed=True)
    assert len(table.timeline.commits) == 1


def test_an_overwrite_returns_its_instant(table: HoodieTable) -> None:
    table.upsert(ROWS)
    assert table.overwrite(ROWS.slice(0, 1)).inserted == 1
    gone = table.delete_partitions("x")
    assert gone == WriteResult(table.timeline.commits[-1].time)


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.tabel.name": "t"},
        {"hoodie.datasource.query.type": "incremental"},
        {"hoodie.index.type": "HBASE"},
    ],
)
def test_a_typo_was_reported_only_when_the_table_was_used(options: dict[str, str]) -> None:
    with pytest.raises(OptionError):
        HoodieTable("memory://t", options)


def test_errors_of_write_and_read_options_are_reported_together() -> None:
    options = {
        "hoodie.tabel.name": "t",
        "hoodie.index.type": "HBASE",
        "hoodie.datasource.merge.type": "skip_merge",
    }
    with pytest.raises(OptionError) as caught:
        HoodieTable("memory://t", options)
    assert [part.key for part in caught.value.parts] == list(options)


def test_a_path_object_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    HoodieTable(tmp_path / "t", TRIPS).upsert(ROWS)
    assert found(HoodieTable(str(tmp_path / "t"))) == READ
    monkeypatch.setenv("HOME", str(tmp_path))
    assert found(HoodieTable("~/t")) == READ
    assert found(HoodieTable(Path("~") / "t")) == READ


def test_a_dataset_could_not_be_pickled(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, TRIPS)
    table.upsert(ROWS)
    pickled = pickle.dumps(table.to_pyarrow_dataset())
    table.upsert(trips(("c", "x", 1, 3.0)))  # after what the dataset has
    assert pickle.loads(pickled).to_table(["id"]).sort_by("id")["id"].to_pylist() == ["a", "b"]


def test_representations_name_the_kind_and_the_content(table: HoodieTable, tmp_path: Path) -> None:
    secret = {"hoodie.py.storage.option.secret": "hush"}
    assert repr(HoodieTable(tmp_path, secret)) == f"HoodieTable({str(tmp_path)!r})"
    table.upsert(ROWS)
    time = table.timeline.commits[-1].time
    assert repr(table.timeline) == f"<Timeline: 1 completed, 0 pending, latest {time}>"
    assert f"<td>{time}</td><td>commit</td>" in table.timeline._repr_html_()


def test_all_errors_are_at_hand() -> None:
    names = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    ours = {name for name in names if issubclass(getattr(errors, name), errors.HoodieError)}
    assert ours <= set(hoodie_ds.__all__)
    assert hoodie_ds.WriteConflictError is errors.WriteConflictError


def test_completion_offered_private_names() -> None:
    offered = [name for name in dir(hoodie_ds) if not name.startswith("_")]
    assert {*hoodie_ds.__all__, "errors"} == {*offered, "__version__"}
    assert not {"Any", "import_module", "TYPE_CHECKING", "annotations"} & set(offered)
    assert {"register", "CommitListener", "WriteResult", "OptionError"} <= set(offered)


def test_without_spark_nothing_of_spark_is_imported() -> None:
    code = (
        "import sys, hoodie_ds; dir(hoodie_ds); "
        "sys.exit(any(m.partition('.')[0] in ('pyspark', 'pandas') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_reader_that_fails_leaves_the_table_as_it_was(table: HoodieTable) -> None:
    table.upsert(ROWS)

    def batches() -> Any:
        yield from ROWS.slice(0, 1).to_batches()
        raise RuntimeError("the source is gone")

    reader = pa.RecordBatchReader.from_batches(ROWS.schema, batches())
    with pytest.raises(RuntimeError, match="the source is gone"):
        table.upsert(reader, {ORDERING: "ts"})
    assert found(table) == READ
    table.upsert(ROWS)
    assert found(table) == READ


def test_rows_that_can_be_read_once_are_written_again_after_a_conflict(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.num.retries.on.conflict.failures": "1",
    }
    commit, tries = Coordinator.commit, []

    def second_time(self: Coordinator, messages: Any) -> WriteResult:
        tries.append(messages)
        if len(tries) == 1:
            raise WriteConflictError("another was faster")
        return commit(self, messages)

    monkeypatch.setattr(Coordinator, "commit", second_time)
    assert table.upsert(ROWS.to_reader(max_chunksize=1), several).inserted == 2
    assert (len(tries), found(table)) == (2, READ)


def test_a_conflict_left_its_instant_until_its_heartbeat_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage, commit = MemoryStorage(), Coordinator.commit
    several = {**TRIPS, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    table = HoodieTable("/t", several, storage=storage)
    table.upsert(ROWS)

    def overtaken(self: Coordinator, messages: Any) -> WriteResult:
        monkeypatch.setattr(Coordinator, "commit", commit)
        table.upsert(ROWS)
        return commit(self, messages)

    monkeypatch.setattr(Coordinator, "commit", overtaken)
    with pytest.raises(WriteConflictError):
        table.delete(where="id = a")
    assert storage.list(".hoodie/.heartbeat") == []


def test_a_failed_write_left_its_instant_until_its_heartbeat_expired() -> None:
    storage = MemoryStorage()
    several = {**TRIPS, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    table = HoodieTable("/t", several, storage=storage)
    table.upsert(ROWS)
    for file in storage.list("x"):
        storage.delete(file.path)
    locked = {"hoodie.write.lock.wait_time_ms": "1"}
    for ending in (errors.CorruptFileError, errors.CorruptFileError, errors.LockTimeoutError):
        if ending is errors.LockTimeoutError:
            storage.put_if_absent(".hoodie/.locks/leases/000000009999", b"another")
        with pytest.raises(ending):
            table.upsert(ROWS.slice(0 if ending is errors.CorruptFileError else 1), locked)
        assert len(table.timeline.pending) <= 1
        assert storage.list(".hoodie/.heartbeat") == []

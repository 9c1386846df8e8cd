"""What a new user of Spark met: errors that were buried, triggers and tables that did nothing."""

from __future__ import annotations

import inspect
import logging
import pickle
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from hoodie_ds import (
    CommitListener,
    HoodieDataSource,
    HoodieTable,
    errors,
    foreach_batch,
    run_services,
    shuffle_by_file_group,
)
from hoodie_ds.datasource.builders import watch_stream_writer
from hoodie_ds.datasource.commit_listener import _leave, _show
from hoodie_ds.datasource.registration import register
from hoodie_ds.datasource.spark_errors import end_with_our_sentence, our_sentence
from hoodie_ds.datasource.task import in_worker
from hoodie_ds.errors import (
    AccessDeniedError,
    HoodieError,
    OptionError,
    SchemaError,
    TableNotFoundError,
    UnavailableError,
)
from tests.tables import BUCKETS, TRIPS, tree, trips

ROWS = trips(("a", "x", 1, 1.5), ("b", "y", 2, 2.5))
KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


def columns(*pairs: tuple[str, object], nullable: bool = True) -> StructType:
    fields = [
        {"name": name, "type": kind, "nullable": nullable, "metadata": {}} for name, kind in pairs
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


TABLE = columns(("id", "string"), ("city", "string"), ("ts", "long"), ("fare", "double"))


def source(path: Path, **options: str) -> HoodieDataSource:
    return HoodieDataSource({**TRIPS, "path": str(path), **options})


def read(path: Path, schema: StructType) -> pa.Table:
    reader = source(path).reader(schema)
    batches = [batch for split in reader.partitions() for batch in reader.read(split)]
    return pa.Table.from_batches(batches) if batches else pa.table({})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_of_a_task_lost_its_message(kind: type[HoodieError]) -> None:
    error = kind("some.key", 7, "do this") if kind is OptionError else kind("it is so")
    for copy in (pickle.loads(pickle.dumps(error)), cloudpickle.loads(cloudpickle.dumps(error))):
        assert type(copy) is kind
        assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_errors_of_several_options_of_a_task_lost_their_message() -> None:
    error = OptionError.of([OptionError("a", 1, "do this"), OptionError("b", None, "do that")])
    copy = cloudpickle.loads(cloudpickle.dumps(error))
    assert (str(copy), len(str(copy).splitlines())) == (str(error), 1)
    assert [part.key for part in copy.parts] == ["a", "b"]


def test_an_error_at_begin_became_a_pickling_error(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(ROWS)
    with pytest.raises(OptionError, match="'7' is refused: table 'trips' has '2'"):
        source(tmp_path, **{BUCKETS: "7"}).streamWriter(TABLE, overwrite=False)


def test_only_the_pickled_writer_begins_a_batch(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(ROWS)
    begun = source(tmp_path).streamWriter(TABLE, overwrite=False)
    assert pickle.loads(pickle.dumps(begun))._batch.proposed_time > ""
    # The one that commits is made by a data source that came from another process: at the commit
    # of a query whose options are refused by now, it is the batch that says so.
    other = source(tmp_path, **{BUCKETS: "7"})
    sent = pickle.loads(pickle.dumps(other))
    assert sent.streamWriter(TABLE, overwrite=False)._batch is None


def test_epochs_of_a_continuous_query_were_committed_without_their_rows(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(ROWS)
    before = tree(tmp_path)
    writer = source(tmp_path).streamWriter(TABLE, overwrite=False)
    with pytest.raises(OptionError, match="use trigger\\(processingTime"):
        writer.commit([None, None], 3)
    assert tree(tmp_path) == before
    writer.commit([], 4)  # a micro-batch without partitions
    assert tree(tmp_path) == before


def test_a_continuous_query_was_started_and_partition_columns_were_left_out(tmp_path: Path) -> None:
    class Writer:
        def __init__(self) -> None:
            self.started = 0
            self._spark = SimpleNamespace(conf=SimpleNamespace(getAll={}))

        def format(self, source: str) -> Writer:
            return self

        def trigger(self, *, processingTime: str = "", continuous: str = "") -> Writer:  # noqa: N803
            return self

        def partitionBy(self, *cols: Any) -> Writer:  # noqa: N802
            return self

        def start(self, path: str = "", format: str | None = None, **more: object) -> None:
            self.started += 1

        def toTable(self, tableName: str, format: str | None = None) -> None:  # noqa: N802, N803
            self.started += 1

    for _ in range(2):
        watch_stream_writer(Writer, "hoodie_py")
    refused = [
        lambda: Writer().format("hoodie_py").trigger(continuous="1 second").start(),
        lambda: Writer().trigger(continuous="1 second").format(source="hoodie_py").start("/t"),
        lambda: Writer().trigger(continuous="1 second").start("/t", "hoodie_py"),
        lambda: Writer().trigger(continuous="1 second").toTable("t", format="hoodie_py"),
    ]
    for start in refused:
        with pytest.raises(OptionError, match="no rows in continuous mode"):
            start()
    ours = Writer().format("hoodie_py")
    partitioned = [
        Writer().format("hoodie_py").partitionBy("a", "b").start,
        Writer().partitionBy(["a", "b"]).format("hoodie_py").start,
        lambda: ours.start(partitionBy=["a", "b"], format=None),
    ]
    for start in partitioned:
        with pytest.raises(OptionError, match=r"set hoodie.datasource.\S+partitionpath.field=a,b$"):
            start()
    passing = [
        Writer().format("kafka").trigger(continuous="1 second"),
        Writer().format("parquet").partitionBy("a"),
        Writer().format("hoodie_py").partitionBy(),
        Writer().format("hoodie_py").trigger(continuous="1 s").trigger(processingTime="1 s"),
        Writer(),
    ]
    for writer in passing:
        writer.start()
        assert writer.started == 1


def test_several_paths_were_no_path(tmp_path: Path) -> None:
    several = HoodieDataSource({"paths": '["/a","/b"]'})
    with pytest.raises(OptionError, match="one table, as in Hudi; load each by itself"):
        several.schema()


def test_a_table_without_file_slices_could_not_be_read(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ROWS)
    table.delete_partitions(["x", "y"])
    whole = source(tmp_path).schema()
    assert whole.names[5:] == ["id", "city", "ts", "fare"]
    reader = source(tmp_path).reader(whole)
    (split,) = reader.partitions()
    assert list(reader.read(split)) == []


def test_a_read_where_no_table_is_yet_says_so(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="write to it to create the table"):
        source(tmp_path).schema()


@pytest.mark.parametrize("kind", ["interval year to month", "void"])
def test_a_type_that_no_table_holds_names_its_column(tmp_path: Path, kind: str) -> None:
    array = {"type": "array", "elementType": kind, "containsNull": True}
    for given in (kind, array):
        schema = columns(("id", "string"), ("c", given))
        with pytest.raises(SchemaError, match=r"column 'c(\.element)?' is of type .*cast it to"):
            source(tmp_path).writer(schema, overwrite=False)


def test_a_declared_schema_was_refused(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(ROWS)
    rows = read(tmp_path, columns(("fare", "double"), ("id", "string"))).sort_by("id")
    assert rows.to_pydict() == {"fare": [1.5, 2.5], "id": ["a", "b"]}
    assert rows.column_names == ["fare", "id"]
    assert read(tmp_path, columns(("ts", "long"), nullable=False)).num_rows == 2


def test_a_declared_type_may_be_wider(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "n": pa.array([7], pa.int32()), "f": pa.array([1.5], "float")})
    HoodieTable(str(tmp_path), {"hoodie.table.name": "t"}).insert(rows)
    found = read(tmp_path, columns(("n", "long"), ("f", "double"), ("id", "string")))
    assert found.schema.types == [pa.int64(), pa.float64(), pa.string()]
    assert found.to_pylist() == [{"n": 7, "f": 1.5, "id": "a"}]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (columns(("faer", "double")), "'faer' of the declared schema is not in the table"),
        (columns(("ts", "integer")), "'ts' is int64 in the table and int32"),
        (columns(("id", "long")), "'id' is string in the table and int64"),
        (columns(), "no column"),
    ],
)
def test_a_declared_schema_that_does_not_fit(
    tmp_path: Path, declared: StructType, words: str
) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(ROWS)
    with pytest.raises(SchemaError, match=words):
        source(tmp_path).reader(declared)


def test_nulls_in_a_column_declared_without_them(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(trips(("a", "x", 1, None)))
    with pytest.raises(SchemaError, match="'fare' is declared NOT NULL and has nulls"):
        read(tmp_path, columns(("fare", "double"), nullable=False))


def test_a_catalog_table_was_created_that_nothing_could_read(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(ROWS)
    given = {"path": str(tmp_path), "location": str(tmp_path), "owner": "me"}
    with pytest.raises(OptionError, match="CREATE TEMPORARY VIEW"):
        HoodieDataSource({**given, "provider": "hoodie_py"}).schema()
    for made in (HoodieDataSource({}), HoodieDataSource(TRIPS)):
        with pytest.raises(OptionError, match=r"'path' is not set: .*CREATE TEMPORARY VIEW"):
            made.writer(TABLE, overwrite=False)
    assert "id" in HoodieDataSource({"Location": str(tmp_path)}).schema().names


def test_our_message_was_not_the_last_line() -> None:
    from pyspark.errors import AnalysisException, PySparkException

    ours = "hoodie_ds.errors.SchemaError: column 'x' is missing; add it"
    text = f"[STREAM_FAILED] Query\nTraceback:\n  File x\n{ours}\n SQLSTATE: 1\n=== Plan ===\nId: 1"
    for _ in range(2):
        end_with_our_sentence()
    assert str(PySparkException(text)).splitlines()[-1] == ours
    assert str(AnalysisException(text)) == f"{text}\n\n{ours}"
    assert str(PySparkException(f"before\n{ours}")) == f"before\n{ours}"
    assert str(PySparkException("of Spark alone\n\n")) == "of Spark alone\n\n"
    assert our_sentence(text) == "column 'x' is missing; add it"
    assert our_sentence("of Spark alone") is None


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("ModuleNotFoundError: No module named 'hoodie_ds'", "has no module 'hoodie_ds': install"),
        ("ModuleNotFoundError: No module named 'pyarrow.lib'", sys.executable),
        (
            'java.io.IOException: Cannot run program "./env/bin/python": error=2',
            "'./env/bin/python' of Spark's workers is not on every node",
        ),
    ],
)
def test_a_worker_without_the_package_did_not_say_what_to_do(cause: str, remedy: str) -> None:
    from pyspark.errors import PySparkException

    end_with_our_sentence()
    last = str(PySparkException(f"Traceback\n{cause}\n SQLSTATE: 38000")).splitlines()[-1]
    assert remedy in last
    assert "'On a cluster'" in last


@pytest.mark.parametrize(
    "cause", ["ModuleNotFoundError: No module named 'numpyro'", 'Cannot run program "whoami"']
)
def test_the_failure_of_another_program_was_taken_for_ours(cause: str) -> None:
    from pyspark.errors import PySparkException

    end_with_our_sentence()
    assert str(PySparkException(cause)) == cause


@pytest.mark.parametrize("kind", [AccessDeniedError, UnavailableError])
def test_an_error_did_not_name_the_worker_without_credentials(kind: type[HoodieError]) -> None:
    said = r"no key; this was in a Python worker on .*storage\.option"
    with pytest.raises(kind, match=said), in_worker():
        raise kind("no key")
    with pytest.raises(SchemaError, match=r"^no column$"), in_worker():
        raise SchemaError("no column")


def progress(query: str, batch: int) -> Any:
    return SimpleNamespace(progress=SimpleNamespace(id=query, batchId=batch))


def test_a_listener_that_showed_nothing_under_default_logging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    once = {
        "hoodie.datasource.write.streaming.checkpoint.identifier": "q",
        "hoodie.datasource.write.batch.identifier": "4",
    }
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ROWS, once)
    (instant,) = table.timeline.commits
    listener = CommitListener({"path": str(tmp_path)})
    logged = logging.getLogger("hoodie_ds")
    monkeypatch.setattr(logged, "propagate", False)  # without the handlers of pytest
    listener.onQueryProgress(progress("q", 4))
    said = capsys.readouterr().err
    assert said.startswith(f"hoodie_ds: {tmp_path}: instant {instant.time}, batch_id 4, ")
    listener.onQueryProgress(progress("q", 5))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("given", ["/tmp/t", [], {5: "x"}], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        CommitListener,
        foreach_batch,
        lambda opts: run_services(None, opts),  # type: ignore[arg-type]
        lambda opts: shuffle_by_file_group(None, opts),  # type: ignore[arg-type]
    ],
    ids=["listener", "foreachBatch", "services", "shuffle"],
)
def test_a_path_in_place_of_options(call: Callable[[Any], object], given: object) -> None:
    with pytest.raises(OptionError, match=r"'options' = .* is refused: give "):
        call(given)


def test_a_listener_logs_where_logging_is_set_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, "hoodie_ds"):
        _show({"path": str(tmp_path), "instant": "9", "batch_id": 7})
    (record,) = caplog.records
    assert record.getMessage() == f"{tmp_path}: instant 9, batch_id 7"
    assert capsys.readouterr().err == ""


def test_a_listener_that_spark_called_after_the_end() -> None:
    calls: list[object] = []

    def wait(milliseconds: int) -> None:
        calls.append("waited")
        raise Py4JError("too long")

    bus = SimpleNamespace(waitUntilEmpty=wait)
    spark = SimpleNamespace(
        sparkContext=SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(listenerBus=lambda: bus))
        ),
        streams=SimpleNamespace(removeListener=calls.append),
    )
    listener = CommitListener({"path": "/t"})
    with mock.patch.object(SparkSession, "getActiveSession", return_value=spark):
        _leave(weakref.ref(listener))
    assert calls == ["waited", listener]
    with mock.patch.object(SparkSession, "getActiveSession", return_value=None):
        _leave(weakref.ref(listener))
    assert len(calls) == 2


def test_a_second_register_made_spark_warn() -> None:
    registered: list[type] = []
    conf = {"spark.sql.execution.arrow.maxBytesPerBatch": "2147483647"}
    spark = SimpleNamespace(
        conf=SimpleNamespace(get=conf.get, set=conf.__setitem__, getAll=conf),
        dataSource=SimpleNamespace(register=registered.append),
    )
    for _ in range(2):
        register(spark)  # type: ignore[arg-type]
    assert registered == [HoodieDataSource]

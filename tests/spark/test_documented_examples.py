"""The examples of the documents, with Spark: each is run, in the order of its document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from tests.documents import PAGES, blocks, docstrings, document, run_docstring, run_example

pytestmark = pytest.mark.spark

README = blocks(document("README.md"), "python")
OF_THEIR_OWN = {f"docs/tutorials/{name}.md" for name in ("first-table", "kafka", "clouds")}
GUIDES = [page for page in PAGES if page not in OF_THEIR_OWN]
COLUMNS = ["uuid", "city", "fare", "ts"]


def test_the_examples_of_the_readme(spark: Any, tmp_path: Path) -> None:
    options, stream, read, _library = README
    batch = blocks(document("docs/guides/writing.md"), "python")[0]
    names: dict[str, Any] = {}
    for code in (options, stream, stream):
        run_example(code, names, tmp_path)
    table = HoodieTable(tmp_path / "trips")
    streamed = {row["uuid"]: row["fare"] for row in table.read().to_pylist()}
    assert streamed == {str(number): number / 2 for number in range(2000)}

    for code in (batch, read):
        run_example(code, names, tmp_path)
    left = {row["uuid"]: row for row in table.read().to_pylist()}
    assert streamed.keys() - left.keys() == {"2"}
    assert left["0"]["fare"] == 9.5
    berlin = names["trips"].where("city = 'berlin'")
    assert {row.uuid for row in berlin.collect()} == {n for n in left if int(n) % 2 == 0}


def test_the_first_table_as_it_is_told(spark: Any, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for code in blocks(document("docs/tutorials/first-table.md"), "python"):
        run_example(code, names, tmp_path)
    assert HoodieTable(tmp_path / "rides").count() == 103


def test_the_json_of_kafka_is_streamed(spark: Any, tmp_path: Path) -> None:
    setup, stream = blocks(document("docs/tutorials/kafka.md"), "python")
    sent = ['{"id": 1, "city": "oslo", "fare": 9.5, "ts": 1}', "no JSON", '{"id": 2, "ts": 1}']
    topic = tmp_path / "topic"
    topic.mkdir()
    (topic / "messages").write_text("\n".join(sent))
    source = '.format("kafka").options(**kafka, startingOffsets="earliest").load()'
    assert source in stream
    names: dict[str, Any] = {}
    for code in (setup, stream.replace(source, '.format("text").load("/tmp/topic")')):
        run_example(code, names, tmp_path)
    fares = {
        row["id"]: row["fare"] for row in HoodieTable(tmp_path / "kafka-rides").read().to_pylist()
    }
    assert fares == {1: 9.5, 2: None}


@pytest.mark.slow
def test_the_examples_of_docstrings(spark: Any, tmp_path: Path) -> None:
    found = {name: text for name, text in docstrings() if name.startswith("datasource/")}
    assert len(found) > 4
    changes = spark.createDataFrame([("b", "rome", 13.0, 2), ("c", "rome", 7.0, 2)], COLUMNS)
    changes.write.parquet(str(tmp_path / "changes"))
    stream = spark.readStream.schema(changes.schema).parquet(str(tmp_path / "changes"))
    rows = pa.table(
        {"uuid": ["a", "b"], "city": ["oslo", "rome"], "fare": [9.5, 12.0], "ts": [1, 1]}
    )
    for number, text in enumerate(found.values()):
        folder = tmp_path / str(number)
        names: dict[str, Any] = {}
        run_example(README[0], names, folder)
        HoodieTable(folder / "trips", names["opts"]).upsert(rows)
        names.update(hoodie_ds=hoodie_ds, spark=spark, changes=changes, stream=stream)
        left = run_docstring(text, names, folder)
        if "query" in left:
            left["query"].processAllAvailable()
            left["query"].stop()
            assert HoodieTable(folder / "trips").count() == 3
        elif "listener" in left:
            spark.streams.removeListener(left["listener"])


@pytest.mark.slow
def test_the_examples_of_the_guides(spark: Any, tmp_path: Path) -> None:
    hoodie_ds.register(spark)
    options, *_, library = README
    names: dict[str, Any] = {"spark": spark}
    for code in (options, library):
        run_example(code, names, tmp_path)
    rows = "SELECT string(id) AS uuid, 'berlin' AS city, 0.5D AS fare, now() AS ts FROM range(3)"
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    spark.sql(rows).write.parquet(str(source))
    names["df"] = spark.sql(rows)
    names["df"].write.format("hoodie_py").options(**names["opts"]).mode("append").save()
    names["stream"] = spark.readStream.schema(names["df"].schema).parquet(str(source))
    names["checkpoint"] = str(checkpoint)
    trips = HoodieTable(tmp_path / "trips")
    for page in GUIDES:
        names["opts"] = dict(names["opts"])  # what a page sets is for that page
        for code in blocks(document(page), "python"):
            run_example(code, names, tmp_path)
            if "foreachBatch" in code:
                names["query"].processAllAvailable()
                names["query"].stop()
                assert len(trips.timeline.commits) == 2
            elif "CommitListener" in code:
                spark.streams.removeListener(names["listener"])

    fares = HoodieTable(tmp_path / "fares").read(COLUMNS)
    assert sorted(fares["uuid"].to_pylist()) == ["a", "b"]
    # deleted by partition, and written once by number
    seen = [(row["uuid"], row["fare"]) for row in trips.read(["uuid", "fare"]).to_pylist()]
    assert sorted(seen) == [("0", 0.5), ("1", 0.5), ("2", 0.5)]
    assert spark.sql("SELECT uuid FROM trips").count() == 3
    assert names["two"].columns == ["uuid", "fare"]
    assert names["check_table"] is hoodie_ds.testing.check_table

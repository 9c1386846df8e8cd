"""The examples of the documents, with Spark: each is run, in the order of its document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from tests.documents import blocks, document, run_example

pytestmark = pytest.mark.spark

README = blocks(document("README.md"), "python")
REFERENCE = blocks(document("conf/README.md"), "python")
COLUMNS = ["uuid", "city", "fare", "ts"]


def test_the_examples_of_the_readme(spark: Any, tmp_path: Path) -> None:
    options, stream, batch, read, _library = README
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


def test_the_examples_of_the_reference(spark: Any, tmp_path: Path) -> None:
    import hoodie_ds

    hoodie_ds.register(spark)
    options, *_, library = README
    names: dict[str, Any] = {"spark": spark, "access_key": "key", "secret_key": "secret"}
    for code in (options, library):
        run_example(code, names, tmp_path)
    rows = "SELECT string(id) AS uuid, 'berlin' AS city, 0.5D AS fare, 1L AS ts FROM range(3)"
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    spark.sql(rows).write.parquet(str(source))
    names["df"] = spark.sql(rows)
    names["df"].write.format("hoodie_py").options(**names["opts"]).mode("append").save()
    names["stream"] = spark.readStream.schema(names["df"].schema).parquet(str(source))
    names["checkpoint"] = str(checkpoint)
    for code in REFERENCE:
        run_example(code, names, tmp_path)
        if "foreachBatch" in code:
            names["query"].processAllAvailable()
            names["query"].stop()
        elif "CommitListener" in code:
            spark.streams.removeListener(names["listener"])

    fares = HoodieTable(tmp_path / "fares").read(COLUMNS)
    assert sorted(fares["uuid"].to_pylist()) == ["a", "b"]
    # deleted by partition, written once by number, and again by the stream
    seen = spark.sql("SELECT uuid, fare FROM trips").collect()
    assert sorted((row.uuid, row.fare) for row in seen) == [("0", 0.5), ("1", 0.5), ("2", 0.5)]
    assert names["two"].columns == ["uuid", "fare"]
    assert names["check_table"] is hoodie_ds.testing.check_table

"""The examples of the documents, with Spark: each is run, in the order of its document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from tests.documents import PAGES, blocks, document, run_example

pytestmark = pytest.mark.spark

README = blocks(document("README.md"), "python")
OF_THEIR_OWN = {"docs/tutorials/first-table.md", "docs/tutorials/kafka.md"}
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


def test_the_examples_of_the_guides(spark: Any, tmp_path: Path) -> None:
    import hoodie_ds

    hoodie_ds.register(spark)
    options, *_, library = README
    names: dict[str, Any] = {"spark": spark, "access_key": "key", "secret_key": "secret"}
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

"""Operations through ``df.write``."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from tests.tables import TRIPS, TYPE, TYPES, found, trips
from tests.tiers import by_day

pytestmark = pytest.mark.spark

OPERATION = "hoodie.datasource.write.operation"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shuffled", "kind"),
    by_day(product([True, False], TYPES), [(False, TYPES[0]), (True, TYPES[1])]),
)
def test_overwrites_and_partition_deletes(
    spark: Any, tmp_path: Path, kind: str, shuffled: bool
) -> None:
    hoodie_ds.register(spark)
    options = {**TRIPS, TYPE: kind, "path": str(tmp_path / "t")}

    def write(mode: str, *rows: tuple[str, str, int, float], **more: str) -> None:
        df = spark.createDataFrame(
            trips(*rows).to_pylist(), "id string, city string, ts long, fare double"
        )
        df = hoodie_ds.shuffle_by_file_group(df, options) if shuffled else df.repartition(3)
        chosen = {**options, **({OPERATION: more["operation"]} if more else {})}
        df.write.format("hoodie_py").options(**chosen).mode(mode).save()

    def ids() -> list[str]:
        return [row[0] for row in found(HoodieTable(str(tmp_path / "t"), TRIPS))]

    write("append", *((f"k{i}", f"c{i % 3}", 1, 1.0) for i in range(30)))
    assert len(ids()) == 30
    write("overwrite", ("a", "c0", 0, 1.0), ("b", "c1", 0, 1.0))
    assert ids() == ["a", "b"]
    write("append", ("c", "c1", 0, 1.0), operation="insert_overwrite")
    assert ids() == ["a", "c"]
    write("append", ("b", "c1", 0, 1.0), ("k0", "c0", 0, 1.0))
    assert ids() == ["a", "b", "c", "k0"]
    write("append", ("any", "c1", 0, 1.0), operation="delete_partition")
    assert ids() == ["a", "k0"]
    write("overwrite")
    assert ids() == []


def test_a_batch_without_partitions_does_what_it_is_to_do(spark: Any, tmp_path: Path) -> None:
    options = {**TRIPS, "path": str(tmp_path / "t")}
    table = HoodieTable(options["path"], TRIPS)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    name = "hoodie.datasource.write.streaming.checkpoint.identifier"
    delete = {OPERATION: "delete_partition", "hoodie.datasource.write.partitions.to.delete": "x"}
    nothing = spark.createDataFrame(
        spark.sparkContext.emptyRDD(), "id string, city string, ts long, fare double"
    )
    assert nothing.rdd.getNumPartitions() == 0
    hoodie_ds.foreach_batch({**options, **delete, name: "q"})(nothing, 0)
    assert [row[0] for row in found(table)] == ["b"]

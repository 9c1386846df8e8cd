"""Tables that our sync registered, read by Spark SQL with Hudi's own reader, by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.golden.make.catalogs import answers
from tests.hive_metastore import running_metastore
from tests.interop.jvm_hudi import JvmHudi, JvmHudiMissingError, find_installation
from tests.rows import assert_same_rows
from tests.tables import TRIPS, TYPE, VERSION, trips

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

SYNC = "hoodie.datasource.hive_sync."


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_metastore(tmp_path_factory.mktemp("metastore")) as address:
        yield address


@pytest.fixture(scope="module")
def spark(uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmHudi]:
    """Hudi on Spark 3.5, whose catalog is the metastore."""
    try:
        installation = find_installation(os.environ)
    except JvmHudiMissingError as missing:
        pytest.skip(str(missing))
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": uri,
    }
    with JvmHudi(installation, tmp_path_factory.mktemp("jvm"), os.environ, settings) as oracle:
        yield oracle


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "9")])
def test_spark_finds_the_table_by_its_name(
    spark: JvmHudi, uri: str, tmp_path: Path, kind: str, version: str
) -> None:
    database = f"lake_{version}"
    sync = {f"{SYNC}enable": "true", f"{SYNC}mode": "hms", f"{SYNC}metastore.uris": uri,
            f"{SYNC}database": database, f"{SYNC}table": "trips"}  # fmt: skip
    table = HoodieTable(tmp_path, {**TRIPS, TYPE: kind, VERSION: version, **sync})

    def check(view: str = "trips", query: str = "snapshot") -> None:
        rows = HoodieTable(tmp_path, {"hoodie.datasource.query.type": query}).read()
        spark.sql(f"refresh table {database}.{view}")
        named = ", ".join(rows.column_names)
        found = spark.sql(f"select {named} from {database}.{view}")
        assert_same_rows(found, rows)
        some = spark.sql(f"select {named} from {database}.{view} where city = 'oslo'")
        assert set(some["city"].to_pylist()) == {"oslo"}

    assert not table.upsert(trips(("a", "oslo", 1, 1.0), ("b", "rome", 1, 2.0))).failed_services
    check()
    more = trips(("a", "oslo", 2, 3.5), ("c", "bern", 2, 4.0))
    more = more.append_column("tip", pa.array([1, None], pa.int32()))
    assert not table.upsert(more).failed_services
    check()
    if kind == "MERGE_ON_READ":
        check("trips_rt")
        check("trips_ro", "read_optimized")
    assert not table.delete_partitions("rome").failed_services
    check()
    # Hudi's own writer and sync take a turn, and ours the next.
    theirs = {
        **{key: text for key, text in TRIPS.items() if "bucket" not in key},
        **sync,
        TYPE: kind,
        VERSION: version,
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
    }
    row = trips(("d", "lima", 3, 5.0)).append_column("tip", pa.array([3], pa.int32()))
    spark.write(tmp_path, row, theirs)
    check()
    row = trips(("e", "kyiv", 4, 6.0)).append_column("tip", pa.array([4], pa.int32()))
    assert not table.upsert(row).failed_services
    check()
    partitions = answers(uri, database, str(tmp_path))["trips"]["partitions"]
    assert [one["values"] for one in partitions] == [["bern"], ["kyiv"], ["lima"], ["oslo"]]

"""The sync into AWS Glue, with moto in place of it; it is asked by boto3 alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pyarrow as pa
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto import mock_aws

from hoodie_ds import CatalogError, HoodieTable, OptionError
from tests.tables import TRIPS, trips

SYNC = "hoodie.datasource.hive_sync."
GLUE = {
    **TRIPS,
    f"{SYNC}enable": "true",
    f"{SYNC}mode": "glue",
    f"{SYNC}database": "lake",
    "hoodie.aws.glue.region": "eu-west-1",
}


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with mock_aws():
        yield boto3.client("glue", region_name="eu-west-1")


def partitions(glue: Any) -> dict[str, str]:
    found = glue.get_partitions(DatabaseName="lake", TableName="trips")["Partitions"]
    return {",".join(one["Values"]): one["StorageDescriptor"]["Location"] for one in found}


def test_a_table_is_registered_and_kept_up_to_date(tmp_path: Path, glue: Any) -> None:
    table = HoodieTable(tmp_path, GLUE)
    assert not table.upsert(trips(("a", "oslo", 1, 1.0))).failed_services
    assert not table.upsert(trips(("b", "rome", 1, 1.0))).failed_services
    rows = trips(("a", "oslo", 2, 1.0)).append_column("tip", pa.array([2], pa.int32()))
    assert not table.upsert(rows).failed_services
    assert partitions(glue) == {"oslo": f"{tmp_path}/oslo", "rome": f"{tmp_path}/rome"}
    found = glue.get_table(DatabaseName="lake", Name="trips")["Table"]
    stored, properties = found["StorageDescriptor"], found["Parameters"]
    assert {one["Name"]: one["Type"] for one in stored["Columns"]}["tip"] == "int"
    assert found["TableType"] == "EXTERNAL_TABLE"
    assert stored["InputFormat"] == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    # As AWSGlueCatalogSyncClient has them.
    assert properties["EXTERNAL"] == "TRUE"
    assert properties["hudi.metadata-listing-enabled"] == "FALSE"
    assert properties["spark.sql.sources.provider"] == "hudi"
    assert properties["last_commit_time_sync"] == table.timeline.latest_time
    assert not table.delete_partitions("oslo").failed_services
    assert set(partitions(glue)) == {"rome"}


def test_columns_follow_an_alteration(tmp_path: Path, glue: Any) -> None:
    table = HoodieTable(tmp_path, GLUE)
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    table.alter().rename("fare", "cost").add("tip", pa.int32()).execute()
    table.alter().drop("cost").execute()
    stored = glue.get_table(DatabaseName="lake", Name="trips")["Table"]["StorageDescriptor"]
    assert [(one["Name"], one["Type"]) for one in stored["Columns"]][-3:] == [
        ("id", "string"),
        ("ts", "bigint"),
        ("tip", "int"),
    ]
    assert set(partitions(glue)) == {"oslo"}


def test_a_full_sync_moves_and_drops(tmp_path: Path, glue: Any) -> None:
    table = HoodieTable(tmp_path, GLUE)
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    where = {"DatabaseName": "lake", "TableName": "trips"}
    for value in ("gone", "oslo"):
        glue.batch_delete_partition(PartitionsToDelete=[{"Values": [value]}], **where)
        place = {"Location": f"/elsewhere/{value}"}
        glue.create_partition(
            PartitionInput={"Values": [value], "StorageDescriptor": place}, **where
        )
    table.sync_catalog({"hoodie.meta.sync.incremental": "false"})
    assert partitions(glue) == {"oslo": f"{tmp_path}/oslo"}


def test_a_table_with_another_location_is_registered_again(tmp_path: Path, glue: Any) -> None:
    HoodieTable(tmp_path / "old", GLUE).upsert(trips(("a", "oslo", 1, 1.0)))
    HoodieTable(tmp_path / "new", GLUE).upsert(trips(("b", "rome", 1, 1.0)))
    found = glue.get_table(DatabaseName="lake", Name="trips")["Table"]
    assert found["StorageDescriptor"]["Location"] == f"{tmp_path}/new"
    assert set(partitions(glue)) == {"rome"}


def test_locations_have_the_scheme_of_athena(tmp_path: Path, glue: Any) -> None:
    table = HoodieTable(tmp_path, TRIPS)
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    seen = {**GLUE, "hoodie.datasource.meta.sync.base.path": "s3a://lake/trips"}
    table.sync_catalog(seen)
    assert partitions(glue) == {"oslo": "s3://lake/trips/oslo"}


def test_failures_name_the_request(
    tmp_path: Path, glue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(tmp_path, GLUE)
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    monkeypatch.setattr(
        "moto.glue.models.GlueBackend.batch_create_partition",
        lambda *_: [{"PartitionValues": ["rome"], "ErrorDetail": {"ErrorCode": "Throttled"}}],
    )
    (failure,) = table.upsert(trips(("b", "rome", 1, 1.0))).failed_services
    assert "Glue did not add partitions to trips in database lake: 1 failed" in failure.reason
    assert "Throttled" in failure.reason
    with pytest.raises(OptionError, match="endpoint"):
        table.sync_catalog({"hoodie.aws.glue.endpoint": "no address"})
    refusal = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetDatabase")
    monkeypatch.setattr(BaseClient, "_make_api_call", Mock(side_effect=refusal))
    with pytest.raises(CatalogError, match=r"Glue did not answer.*AccessDenied"):
        table.sync_catalog({"hoodie.datasource.meta.sync.glue.catalogId": "1"})
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    boto3.DEFAULT_SESSION = None
    nowhere = {key: text for key, text in GLUE.items() if not key.endswith("region")}
    with pytest.raises(CatalogError, match=r"no AWS region.*hoodie\.aws\.glue\.region"):
        HoodieTable(tmp_path, nowhere).sync_catalog()

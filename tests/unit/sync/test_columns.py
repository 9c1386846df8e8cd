"""Types of a table in Hive's notation and in Spark's."""

from __future__ import annotations

import json

import pytest

from hoodie_ds.config.enums import PartitionExtractor as By
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.tree import parse_avro
from hoodie_ds.sync.catalog import CatalogColumn, is_same_place
from hoodie_ds.sync.columns import (
    columns_of,
    field_comments,
    hive_type,
    spark_properties,
    spark_schema,
)
from hoodie_ds.sync.hive import partition_name
from hoodie_ds.sync.partitions import partition_values


def record(*types: object) -> str:
    fields = [{"name": f"c{n}", "type": kind} for n, kind in enumerate(types)]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def hive(kind: object, *, timestamps: bool = False) -> str:
    return hive_type(parse_avro(record(kind), "t").children[0], timestamps=timestamps)


def test_types_that_hudis_writer_never_has() -> None:
    assert hive({"type": "string", "logicalType": "uuid"}) == "string"
    assert hive({"type": "enum", "name": "e", "symbols": ["A"]}) == "string"
    assert hive({"type": "int", "logicalType": "time-millis"}) == "int"
    assert hive(["null"] * 1 + ["long"]) == "bigint"
    assert hive(["long"]) == "bigint"
    inner = {"type": "record", "name": "i", "fields": [{"name": "a_b", "type": "int"}]}
    assert hive({"type": "array", "items": inner}) == "array<struct<a_b:int>>"
    with pytest.raises(SchemaError, match="no type for union"):
        hive(["int", "string"])


def test_sparks_schema_has_nullability_and_is_cut_into_parts() -> None:
    avro = record("int", ["null", {"type": "map", "values": "long"}],
                  {"type": "string", "logicalType": "uuid"})  # fmt: skip
    columns = list(columns_of(parse_avro(avro, "t"), meta=False))
    properties = spark_properties(columns, ("c0",), 50)
    parts = int(properties["spark.sql.sources.schema.numParts"])
    text = "".join(properties[f"spark.sql.sources.schema.part.{n}"] for n in range(parts))
    assert parts == -(-len(text) // 50) > 1
    found = {one["name"]: (one["type"], one["nullable"]) for one in json.loads(text)["fields"]}
    numbers = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False}
    assert list(found) == ["c1", "c2", "c0"]
    assert found == {"c1": (numbers, True), "c2": ("string", False), "c0": ("integer", False)}


def test_sparks_schema_marks_blobs_and_has_vectors_as_bytes() -> None:
    """As ``SparkSchemaUtils.convertToSparkSchemaJson`` has them in Hudi 1.2's jar."""
    data = {"name": "data", "type": ["null", "bytes"]}
    blob = {"type": "record", "name": "blob", "logicalType": "blob", "fields": [data]}
    other = {"type": "record", "name": "o", "fields": [{"name": "b", "type": "blob"}]}
    vector = {"type": "fixed", "name": "v", "size": 12, "logicalType": "vector", "dimension": 3}
    blobs = {"type": "array", "items": ["null", "blob"]}
    avro = parse_avro(record(["null", blob], blobs, other, vector), "t")
    fields = json.loads(spark_schema(list(columns_of(avro, meta=False))))["fields"]
    mark = {"hudi_type": "BLOB"}
    assert [field["metadata"] for field in fields] == [mark, mark, {}, {}]
    assert fields[2]["type"]["fields"][0]["metadata"] == mark
    assert (fields[3]["type"], hive(vector)) == ("binary", "binary")


def test_comments_of_fields_come_from_the_schema() -> None:
    fields = [{"name": "a", "type": "int", "doc": "an a"}, {"name": "b", "type": "int"}]
    avro = json.dumps({"type": "record", "name": "r", "fields": fields})
    assert field_comments(avro) == {"a": "an a"}


@pytest.mark.parametrize(
    ("how", "path", "values"),
    [  # of Hudi's TestPartitionValueExtractor and TestMultiPartKeysValueExtractor
        (By.MULTI_PART, "ds=2021-04-25/hh=04", ("2021-04-25", "04")),
        (By.MULTI_PART, "2021-04-25/04", ("2021-04-25", "04")),
        (By.HIVE_STYLE, "datestr=2021-04-02", ("2021-04-02",)),
        (By.SINGLE_PART, "202210", ("202210",)),
        (By.SINGLE_PART, "2022/10", ("2022/10",)),
        (By.SLASHED_DAY, "2022/10/05", ("2022-10-05",)),
        (By.SLASHED_DAY, "year=2022/month=10/day=05", ("2022-10-05",)),
        (By.SLASHED_HOUR, "2020/12/20/01", ("2020-12-20-01",)),
        (By.NONE, "", ()),
    ],
)
def test_values_of_a_path(how: By, path: str, values: tuple[str, ...]) -> None:
    assert partition_values(how, path, [f"f{n}" for n in range(len(values))]) == values


def test_names_of_partitions_are_escaped_as_hive_does() -> None:
    keys = [CatalogColumn("Day", "string"), CatalogColumn("x", "string")]
    assert partition_name(keys, ["a/b=c%", ""]) == "day=a%2Fb%3Dc%25/x=__HIVE_DEFAULT_PARTITION__"


def test_locations_of_different_schemes_are_the_same_place() -> None:
    assert is_same_place("file:/t/x", "/t/x/")
    assert is_same_place("s3a://b/x", "s3://b/x")
    assert not is_same_place("s3a://b/x", "s3a://c/x")
    assert not is_same_place("/t/x", "/t/y")

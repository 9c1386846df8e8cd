"""A table's schema in a catalog: Hive's types of columns, and Spark's schema in properties.

Both come from the commit's Avro schema, as in Hudi's ``HiveSchemaUtil`` and ``SparkSchemaUtils``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hoodie_ds.columns.meta_columns import META_COLUMNS
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.tree import AvroType, Kind

_HIVE: Final = {
    Kind.BOOLEAN: "boolean",
    Kind.INT: "int",
    Kind.LONG: "bigint",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.BYTES: "binary",
    Kind.FIXED: "binary",
    Kind.STRING: "string",
    Kind.ENUM: "string",
}
_SPARK: Final = {
    **_HIVE,
    Kind.INT: "integer",
    Kind.LONG: "long",
}
_BLOB: Final = '{"hudi_type":"BLOB"}'
_INSTANTS: Final = ("timestamp-millis", "timestamp-micros")
_CLOCKS: Final = ("local-timestamp-millis", "local-timestamp-micros")


def columns_of(record: AvroType, *, meta: bool) -> Iterator[tuple[str, AvroType | None]]:
    """Yield the columns of a table: names with types, None for those of the meta columns."""
    if meta:
        yield from ((name, None) for name in META_COLUMNS)
    for name, node in zip(record.names, record.children, strict=True):
        if name not in META_COLUMNS:
            yield name, node


def hive_type(node: AvroType | None, *, timestamps: bool) -> str:
    """Return a type in Hive's notation."""
    if node is None:
        return "string"
    inner, _ = _present(node)

    def of(child: AvroType) -> str:
        return hive_type(child, timestamps=timestamps)

    if inner.logical == "decimal" and inner.precision:
        return f"decimal({inner.precision},{inner.scale})"
    if inner.logical == "date":
        return "date"
    if timestamps and inner.logical in (*_INSTANTS, *_CLOCKS):
        return "timestamp"
    if inner.logical == "uuid":
        return "string"
    if inner.kind is Kind.ARRAY:
        return f"array<{of(inner.children[0])}>"
    if inner.kind is Kind.MAP:
        return f"map<string,{of(inner.children[0])}>"
    if inner.kind is Kind.RECORD:
        pairs = zip(inner.names, inner.children, strict=True)
        # Hive allows no hyphen here; Hudi replaces it too.
        return f"struct<{','.join(f'{name}:{of(kind)}' for name, kind in pairs)}>".replace("-", "_")
    return _plain(inner, _HIVE)


def spark_schema(columns: Sequence[tuple[str, AvroType | None]]) -> str:
    """Return the JSON of Spark's ``StructType``, byte for byte as Hudi writes it."""
    return _spark_struct((name, node) for name, node in columns)


def spark_properties(
    columns: Sequence[tuple[str, AvroType | None]], partitions: Sequence[str], length: int
) -> dict[str, str]:
    """Return the properties with which Spark reads a catalog's table as a Hudi table.

    They are those of ``SparkDataSourceTableUtils.getSparkTableProperties``.
    """
    by_name = dict(columns)
    # A partition field that is no column of the table is a string that is never null, as in Hudi.
    last = [(name, by_name.get(name, AvroType(Kind.STRING))) for name in partitions]
    text = spark_schema([*(column for column in columns if column[0] not in partitions), *last])
    parts = [text[start : start + length] for start in range(0, len(text), length)]
    found = {
        "spark.sql.sources.provider": "hudi",
        "spark.sql.sources.schema.numParts": str(len(parts)),
        **{f"spark.sql.sources.schema.part.{n}": part for n, part in enumerate(parts)},
    }
    if partitions:
        found["spark.sql.sources.schema.numPartCols"] = str(len(partitions))
        found |= {f"spark.sql.sources.schema.partCol.{n}": p for n, p in enumerate(partitions)}
    return found


def field_comments(avro: str) -> Mapping[str, str]:
    """Return the comments of an Avro schema's fields."""
    fields = json.loads(avro).get("fields", ())
    return {str(one["name"]): str(one["doc"]) for one in fields if one.get("doc")}


def _spark_struct(columns: Iterator[tuple[str, AvroType | None]]) -> str:
    fields = []
    for name, node in columns:
        kind, nullable = ('"string"', True) if node is None else _spark_type(node)
        fields.append(
            f'{{"name":{json.dumps(name, ensure_ascii=False)},"type":{kind},'
            f'"nullable":{json.dumps(nullable)},"metadata":{_BLOB if _is_blob(node) else "{}"}}}'
        )
    return f'{{"type":"struct","fields":[{",".join(fields)}]}}'


def _is_blob(node: AvroType | None) -> bool:
    """Whether a type is Hudi's BLOB, or a list or map of them."""
    inner = None if node is None else _present(node)[0]
    if inner is not None and inner.kind in (Kind.ARRAY, Kind.MAP):
        inner, _ = _present(inner.children[0])
    return inner is not None and inner.kind is Kind.RECORD and inner.logical == "blob"


def _spark_type(node: AvroType) -> tuple[str, bool]:
    """Return a type and whether it is nullable."""
    inner, nullable = _present(node)
    if inner.kind is Kind.ARRAY:
        kind, holds_null = _spark_type(inner.children[0])
        text = f'{{"type":"array", "elementType":{kind},"containsNull":{json.dumps(holds_null)}}}'
    elif inner.kind is Kind.MAP:
        kind, holds_null = _spark_type(inner.children[0])
        text = (
            f'{{"type":"map", "keyType":"string","valueType":{kind},'
            f'"valueContainsNull":{json.dumps(holds_null)}}}'
        )
    elif inner.kind is Kind.RECORD:
        text = _spark_struct(zip(inner.names, inner.children, strict=True))
    else:
        text = f'"{_spark_plain(inner)}"'
    return text, nullable


def _spark_plain(inner: AvroType) -> str:
    if inner.logical == "decimal" and inner.precision:
        return f"decimal({inner.precision},{inner.scale})"
    if inner.logical == "date":
        return "date"
    if inner.logical in _INSTANTS:
        return "timestamp"
    if inner.logical in _CLOCKS:
        return "timestamp_ntz"
    return "string" if inner.logical == "uuid" else _plain(inner, _SPARK)


def _present(node: AvroType) -> tuple[AvroType, bool]:
    """Return a type without null, and whether it is nullable."""
    if node.kind is Kind.UNION and len(node.children) == 1:
        return _present(node.children[0])
    return (node, False) if node.optional is None else (node.optional, True)


def _plain(node: AvroType, names: Mapping[Kind, str]) -> str:
    if node.kind not in names:
        raise SchemaError(
            f"a catalog has no type for {node.kind.value} ({len(node.children)} branches); remove "
            "the column from the table, or do not sync the table into a catalog"
        )
    return names[node.kind]

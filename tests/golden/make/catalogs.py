"""Makes `tests/golden/catalogs`: tables of Hudi on the JVM, and what its sync told a metastore.

``python -m tests.golden.make.catalogs`` runs a Hive metastore and Hudi's own writer with its sync
in mode ``hms``. After each write the table is kept with the metastore's answers, as JSON.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol import TBinaryProtocol
from thrift.transport import TSocket, TTransport

from tests.golden.make.recipe import COW, MOR, WRITE, always
from tests.hive_metastore import running_metastore
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi, find_installation

TARGET: Final = Path(__file__).parents[1] / "catalogs"
SYNC: Final = "hoodie.datasource.hive_sync."
DATABASE: Final = "lake"
BASE: Final = "BASE"
"""Stands for the base path in the answers."""
_VOLATILE: Final = {"transient_lastDdlTime", "totalSize", "numFiles"}

Step = tuple[pa.Table, dict[str, str]]


@contextmanager
def metastore_client(uri: str) -> Iterator[Any]:
    """Connect to a metastore, with none of this library's code."""
    host, _, port = uri.removeprefix("thrift://").partition(":")
    transport = TTransport.TBufferedTransport(TSocket.TSocket(host, int(port)))
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocol.TBinaryProtocol(transport))
    finally:
        transport.close()


def answers(uri: str, database: str, base: str) -> dict[str, Any]:
    """Ask a metastore for the tables of a database and their partitions.

    Parameters
    ----------
    uri : str
        The metastore.
    database : str
        Whose tables.
    base : str
        The base path, which `BASE` stands for in the answers.
    """
    with metastore_client(uri) as client:
        return answers_of(client, database, base)


def answers_of(client: Any, database: str, base: str) -> dict[str, Any]:
    """Ask a client for the same."""
    return {
        name: _table_answer(client, client.get_table(database, name), base)
        for name in sorted(client.get_all_tables(database))
    }


def _table_answer(client: Any, table: ttypes.Table, base: str) -> dict[str, Any]:
    found = client.get_partitions(table.dbName, table.tableName, -1) if table.partitionKeys else []
    return {
        "type": table.tableType,
        "partition_keys": [[field.name, field.type] for field in table.partitionKeys],
        "properties": _without_volatile(table.parameters),
        **_storage_answer(table.sd, base),
        "partitions": [
            {"values": list(one.values), **_storage_answer(one.sd, base)}
            for one in sorted(found, key=lambda one: list(one.values))
        ],
    }


def _storage_answer(descriptor: ttypes.StorageDescriptor, base: str) -> dict[str, Any]:
    serde = descriptor.serdeInfo
    return {
        "columns": [[field.name, field.type, field.comment] for field in descriptor.cols],
        "location": descriptor.location.removeprefix("file:").replace(base, BASE),
        "input_format": descriptor.inputFormat,
        "output_format": descriptor.outputFormat,
        "serde": serde.serializationLib,
        "serde_properties": {
            key: text.replace(base, BASE) for key, text in sorted(serde.parameters.items())
        },
    }


def _without_volatile(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in sorted(properties.items()) if key not in _VOLATILE}


_PLAIN: Final = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("qty", pa.int32()), ("ts", pa.int64())]
)
_INNER: Final = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
_TYPED: Final = pa.schema(
    [
        ("id", pa.string()),
        ("flag", pa.bool_()),
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("money", pa.decimal128(12, 3)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("clock", pa.timestamp("us")),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("inner", _INNER),
        ("many", pa.list_(_INNER)),
        ("prices", pa.map_(pa.string(), pa.decimal128(5, 2))),
        ("Mixed", pa.string()),
        ("ts", pa.int64()),
    ]
)
_WIDER: Final = pa.schema(
    [
        *(field for field in _TYPED if field.name not in ("i", "f")),
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("news", pa.string()),
    ]
)


def _of(schema: pa.Schema, *rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def _plain(*cities: str, ts: int = 1) -> pa.Table:
    rows = ({"id": f"k{n}", "city": city, "qty": n, "ts": ts} for n, city in enumerate(cities))
    return _of(_PLAIN, *rows)


_DELETE: Final = {f"{WRITE}operation": "delete_partition"}

RECIPES: Final[dict[str, tuple[dict[str, str], list[Step]]]] = {
    # Partitions that come, and one that goes.
    "v6_cow": (
        {**COW, TABLE_VERSION: "6", f"{WRITE}partitionpath.field": "city"},
        [
            (_plain("ams", "nyc"), {}),
            (_plain("rome", ts=2), {}),
            (_plain("nyc", ts=3), {**_DELETE, f"{WRITE}partitions.to.delete": "city=nyc"}),
        ],
    ),
    # All tables of merge-on-read; two partition fields, without names in the paths.
    "v9_mor": (
        {
            **MOR,
            TABLE_VERSION: "9",
            f"{WRITE}partitionpath.field": "city,qty",
            f"{WRITE}keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
            f"{WRITE}hive_style_partitioning": "false",
        },
        [(_plain("ams", "nyc"), {}), (_plain("ams", "nyc", "rome", ts=2), {})],
    ),
    # Every type; a column that comes and two that widen; no partitions.
    "v8_types": (
        {**COW, TABLE_VERSION: "8"},
        [(_of(_TYPED, {"id": "a", "ts": 1}), {}), (_of(_WIDER, {"id": "b", "ts": 2}), {})],
    ),
    # Properties that the user gives, and times as such.
    "v6_given": (
        {
            **MOR,
            TABLE_VERSION: "6",
            f"{SYNC}table_properties": "owner=me\nkind=b",
            f"{SYNC}serde_properties": "more=1",
            f"{SYNC}support_timestamp": "true",
            f"{SYNC}skip_ro_suffix": "true",
            f"{SYNC}sync_as_datasource": "false",
            f"{SYNC}create_managed_table": "true",
            f"{SYNC}omit_metadata_fields": "true",
        },
        [(_of(_TYPED, {"id": "a", "ts": 1}), {})],
    ),
    # Days in folders of year, month and day.
    "v8_days": (
        {
            **COW,
            TABLE_VERSION: "8",
            f"{WRITE}partitionpath.field": "city",
            f"{WRITE}hive_style_partitioning": "false",
            f"{SYNC}partition_fields": "day",
            f"{SYNC}partition_extractor_class": (
                "org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor"
            ),
        },
        [(_plain("2026/11/22", "2026/11/23"), {})],
    ),
    # A part of the tables alone.
    "v9_rt": (
        {**MOR, TABLE_VERSION: "9", f"{SYNC}table.strategy": "RT",
         f"{WRITE}partitionpath.field": "qty"},
        [(_plain("ams", "nyc"), {})],
    ),
}  # fmt: skip


def make(folder: Path) -> None:
    """Make all of them in a scratch folder."""
    for name in ("metastore", "jvm"):
        (folder / name).mkdir()
    with running_metastore(folder / "metastore") as uri:
        oracle = JvmHudi(find_installation(os.environ), folder / "jvm", os.environ)
        with oracle:
            for name, (options, steps) in RECIPES.items():
                _make_one(oracle, uri, folder / name, options, steps)


def _make_one(
    oracle: JvmHudi, uri: str, path: Path, options: dict[str, str], steps: list[Step]
) -> None:
    database = f"{DATABASE}_{path.name}"
    every = {
        **always(),
        f"{WRITE}recordkey.field": "id",
        f"{WRITE}precombine.field": "ts",
        f"{WRITE}hive_style_partitioning": "true",
        "hoodie.table.name": path.name,
        f"{SYNC}enable": "true",
        f"{SYNC}mode": "hms",
        f"{SYNC}metastore.uris": uri,
        f"{SYNC}database": database,
        f"{SYNC}table": path.name,
        **options,
    }
    told = []
    with zipfile.ZipFile(TARGET / f"{path.name}.zip", "w", zipfile.ZIP_DEFLATED) as kept:
        for number, (rows, more) in enumerate(steps):
            oracle.write(path, rows, {**every, **more})
            for file in sorted(path.rglob("*")):
                if file.is_file() and not file.name.endswith(".crc"):
                    kept.write(file, f"{number}/{file.relative_to(path)}")
            told.append(answers(uri, database, str(path)))
        given = {k: t for k, t in every.items() if k.startswith(SYNC) and "uris" not in k}
        kept.writestr("answers.json", json.dumps({"options": given, "steps": told}, indent=1))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        make(Path(scratch))

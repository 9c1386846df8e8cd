"""A Hive metastore in memory: the Thrift calls that a sync makes, as the real service answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from unittest.mock import patch

from pymetastore.hive_metastore import ttypes

from hoodie_ds.sync import hive


class FakeMetastore:
    """Tables and partitions by name, and the calls that were made.

    As the real one does, it has names in lower case and local places with their scheme.
    """

    def __init__(self) -> None:
        self.databases: dict[str, ttypes.Database] = {}
        self.tables: dict[tuple[str, str], ttypes.Table] = {}
        self.parts: dict[tuple[str, str], dict[str, ttypes.Partition]] = {}
        self.calls: list[str] = []
        self.failing: set[str] = set()

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failing:
            raise ttypes.MetaException(f"{name} is out of order")

    def close(self) -> None:
        self.calls.append("close")

    def get_database(self, name: str) -> ttypes.Database:
        self._called("get_database")
        if name not in self.databases:
            raise ttypes.NoSuchObjectException(name)
        return self.databases[name]

    def create_database(self, database: ttypes.Database) -> None:
        self._called("create_database")
        if database.name in self.databases:
            raise ttypes.AlreadyExistsException(database.name)
        self.databases[database.name] = database

    def get_all_tables(self, database: str) -> list[str]:
        return [name for db, name in self.tables if db == database]

    def get_table(self, database: str, name: str) -> ttypes.Table:
        self._called("get_table")
        if (database, name) not in self.tables:
            raise ttypes.NoSuchObjectException(name)
        return deepcopy(self.tables[database, name])

    def create_table(self, table: ttypes.Table) -> None:
        self._called("create_table")
        if table.dbName not in self.databases:
            raise ttypes.InvalidObjectException(table.dbName)
        self.tables[table.dbName, table.tableName] = _normal(table)
        self.parts[table.dbName, table.tableName] = {}

    def alter_table_with_environment_context(
        self, database: str, name: str, table: ttypes.Table, context: ttypes.EnvironmentContext
    ) -> None:
        self._called("alter_table")
        old = self.tables[database, name]
        self.tables[database, name] = _normal(table)
        if context.properties.get("CASCADE") == "true" and old.sd.cols != table.sd.cols:
            for part in self.parts[database, name].values():
                part.sd.cols = deepcopy(table.sd.cols)

    def drop_table(self, database: str, name: str, deletes: bool) -> None:
        assert not deletes
        self._called("drop_table")
        del self.tables[database, name], self.parts[database, name]

    def get_partition_names(self, database: str, name: str, most: int) -> list[str]:
        self._called("get_partition_names")
        return sorted(self.parts[database, name])

    def get_partitions_by_names(
        self, database: str, name: str, names: list[str]
    ) -> list[ttypes.Partition]:
        self._called("get_partitions_by_names")
        parts = self.parts[database, name]
        return [deepcopy(parts[one]) for one in names if one in parts]

    def get_partitions(self, database: str, name: str, most: int) -> list[ttypes.Partition]:
        return list(self.parts[database, name].values())

    def add_partitions_req(self, request: ttypes.AddPartitionsRequest) -> None:
        self._called("add_partitions")
        assert request.ifNotExists
        for part in request.parts:
            self._parts_of(part).setdefault(self._name(part), _normal(part))

    def alter_partitions(self, database: str, name: str, parts: list[ttypes.Partition]) -> None:
        self._called("alter_partitions")
        for part in parts:
            self.parts[database, name][self._name(part)] = _normal(part)

    def drop_partition(self, database: str, name: str, values: list[str], deletes: bool) -> None:
        assert not deletes
        self._called("drop_partition")
        found = [key for key, one in self.parts[database, name].items() if one.values == values]
        if not found:
            raise ttypes.NoSuchObjectException(str(values))
        del self.parts[database, name][found[0]]

    def _parts_of(self, part: ttypes.Partition) -> dict[str, ttypes.Partition]:
        return self.parts[part.dbName, part.tableName]

    def _name(self, part: ttypes.Partition) -> str:
        keys = self.tables[part.dbName, part.tableName].partitionKeys
        pairs = zip(keys, part.values, strict=True)
        codes = {"/": "%2F", ":": "%3A", "=": "%3D", "%": "%25"}
        return "/".join(
            f"{key.name}={''.join(codes.get(letter, letter) for letter in value)}"
            for key, value in pairs
        )


def _normal(one: Any) -> Any:
    kept = deepcopy(one)
    if kept.sd.location.startswith("/"):
        kept.sd.location = f"file:{kept.sd.location}"
    kept.parameters = {**(kept.parameters or {}), "transient_lastDdlTime": "1"}
    assert all(field.name == field.name.lower() for field in kept.sd.cols)
    return kept


@contextmanager
def in_place_of_thrift(fake: FakeMetastore) -> Iterator[None]:
    """Have syncs speak to a metastore in memory."""
    with patch.object(hive, "_connected", lambda uris: (fake, fake)):
        yield

"""A Hive metastore, over Thrift with the stubs of the package ``pymetastore``.

The requests are those of ``HMSDDLExecutor`` and ``HoodieHiveSyncClient``, except that only the
partitions that commits wrote to are read, by name. SASL and TLS are not supported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.errors import CatalogError
from hoodie_ds.sync.catalog import CatalogColumn, CatalogPartition, CatalogTable

if TYPE_CHECKING:
    from pymetastore.hive_metastore import ttypes

T = TypeVar("T")

_SECONDS: Final = 60
"""Timeout of one answer."""
_NO_LOG: Final = logging.NullHandler()
_ESCAPED: Final = frozenset("\"#%'*/:=?\\\x7f{[]^") | frozenset(map(chr, range(1, 32)))
"""Characters that are percent-encoded in partition names (Hive's ``FileUtils``)."""
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"


class HiveCatalog:
    """A database of a Hive metastore; the constructor connects."""

    extra_properties: Mapping[str, str]

    def __init__(self, options: CatalogOptions) -> None:
        self.extra_properties = {}
        self._options = options
        self._database = options.database.lower()
        self._known: dict[str, ttypes.Table] = {}
        self._transport, self._client = _connected(options.uris)

    def location(self, path: str) -> str:
        """Return the base path unchanged."""
        return path

    def has_database(self) -> bool:
        """Whether the database exists."""
        return self._found(lambda: self._client.get_database(self._database)) is not None

    def create_database(self) -> None:
        """Create the database with Hudi's description, unless another process did."""
        from pymetastore.hive_metastore import ttypes

        made = ttypes.Database(self._database, "automatically created by hoodie", None, None)
        with self._requesting("create the database"):
            try:
                self._client.create_database(made)
            except ttypes.AlreadyExistsException:
                return

    def table(self, name: str) -> CatalogTable | None:
        """Return a table; None if there is none."""
        found = self._found(lambda: self._client.get_table(self._database, name.lower()))
        if found is None:
            return None
        self._known[name.lower()] = found
        stored, serde = found.sd, found.sd.serdeInfo
        return CatalogTable(
            name=name,
            location=stored.location or "",
            columns=_columns(stored.cols),
            partition_keys=_columns(found.partitionKeys),
            input_format=stored.inputFormat or "",
            output_format=stored.outputFormat or "",
            serde=serde.serializationLib or "",
            serde_properties=dict(serde.parameters or {}),
            properties=dict(found.parameters or {}),
        )

    def create_table(self, table: CatalogTable) -> None:
        """Create a table."""
        from pymetastore.hive_metastore import ttypes

        made = ttypes.Table(
            tableName=table.name.lower(),
            dbName=self._database,
            sd=_described(table),
            partitionKeys=_fields(table.partition_keys),
            parameters=dict(table.properties),
            tableType="MANAGED_TABLE" if self._options.managed else "EXTERNAL_TABLE",
        )
        with self._requesting(f"create the table {table.name}"):
            self._client.create_table(made)
        self._known[table.name.lower()] = made

    def change_table(self, table: CatalogTable, *, columns_changed: bool) -> None:
        """Replace a table's entry; if columns have changed, its partitions' too."""
        from pymetastore.hive_metastore import ttypes

        name = table.name.lower()
        made = self._known[name]
        made.sd.cols = _fields(table.columns)
        made.sd.inputFormat, made.sd.outputFormat = table.input_format, table.output_format
        made.sd.serdeInfo.serializationLib = table.serde
        made.sd.serdeInfo.parameters = dict(table.serde_properties)
        made.parameters = dict(table.properties)
        cascades = columns_changed and bool(table.partition_keys)
        context = ttypes.EnvironmentContext({"CASCADE": "true"} if cascades else {})
        with self._requesting(f"change the table {table.name}"):
            self._client.alter_table_with_environment_context(self._database, name, made, context)

    def drop_table(self, name: str) -> None:
        """Drop a table without its files."""
        with self._requesting(f"drop the table {name}"):
            self._client.drop_table(self._database, name.lower(), False)

    def partitions(
        self, table: CatalogTable, values: Sequence[tuple[str, ...]] | None
    ) -> list[CatalogPartition]:
        """Return the partitions that have some of the values; all if None."""
        name = table.name.lower()
        with self._requesting(f"list partitions of {table.name}"):
            if values is None:
                names = self._client.get_partition_names(self._database, name, -1)
            else:
                names = [partition_name(table.partition_keys, one) for one in values]
            found = [
                one
                for part in self._parts(names)
                for one in self._client.get_partitions_by_names(self._database, name, part)
            ]
        return [CatalogPartition(tuple(one.values), one.sd.location) for one in found]

    def add_partitions(self, table: CatalogTable, added: Sequence[CatalogPartition]) -> None:
        """Add partitions; existing ones stay as they are."""
        from pymetastore.hive_metastore import ttypes

        name = table.name.lower()
        with self._requesting(f"add partitions to {table.name}"):
            for part in self._parts(added):
                made = [self._partition(table, one) for one in part]
                request = ttypes.AddPartitionsRequest(self._database, name, made, True, False)
                self._client.add_partitions_req(request)

    def change_partitions(self, table: CatalogTable, changed: Sequence[CatalogPartition]) -> None:
        """Change the locations of partitions."""
        name = table.name.lower()
        with self._requesting(f"change partitions of {table.name}"):
            for part in self._parts(changed):
                made = [self._partition(table, one) for one in part]
                self._client.alter_partitions(self._database, name, made)

    def drop_partitions(self, table: CatalogTable, dropped: Sequence[CatalogPartition]) -> None:
        """Drop partitions without their files; a missing one is no error."""
        name = table.name.lower()
        for one in dropped:
            values = list(one.values)
            self._found(
                lambda values=values: self._client.drop_partition(  # type: ignore[misc]
                    self._database, name, values, False
                )
            )

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _partition(self, table: CatalogTable, one: CatalogPartition) -> ttypes.Partition:
        from pymetastore.hive_metastore import ttypes

        stored = _described(table)
        stored.location = one.location
        name = table.name.lower()
        return ttypes.Partition(list(one.values), self._database, name, 0, 0, stored, {})

    def _parts(self, whole: Sequence[T]) -> Iterator[Sequence[T]]:
        size = self._options.partitions_at_once
        return (whole[start : start + size] for start in range(0, len(whole), size))

    def _found(self, ask: Callable[[], T]) -> T | None:
        """Return an answer; None if the metastore has no such object."""
        from pymetastore.hive_metastore import ttypes

        with self._requesting("answer"):
            try:
                return ask()
            except (ttypes.NoSuchObjectException, ttypes.UnknownDBException):
                return None

    @contextmanager
    def _requesting(self, what: str) -> Iterator[None]:
        """Turn errors of a request into `CatalogError`."""
        from thrift.Thrift import TException

        try:
            yield
        except (TException, OSError, EOFError) as error:
            reason = getattr(error, "message", None) or str(error) or type(error).__name__
            raise CatalogError(
                f"the Hive metastore at {', '.join(self._options.uris)} did not {what} in "
                f"database {self._database}: {reason}"
            ) from error


def partition_name(keys: Sequence[CatalogColumn], values: Sequence[str]) -> str:
    """Return a partition's name in a metastore (``Warehouse.makePartName``)."""
    pairs = zip(keys, values, strict=True)
    return "/".join(f"{_escaped(key.name.lower())}={_escaped(value)}" for key, value in pairs)


def _escaped(text: str) -> str:
    codes = (f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in text)
    return "".join(codes) or _NO_VALUE


def _connected(uris: Sequence[str]) -> tuple[Any, Any]:
    """Return transport and client of the first address that answers."""
    from pymetastore.hive_metastore import ThriftHiveMetastore
    from thrift.protocol import TBinaryProtocol
    from thrift.transport import TSocket, TTransport

    # Thrift logs each failure, which the error has too; without a handler it prints it
    logging.getLogger("thrift").addHandler(_NO_LOG)
    failed = []
    for uri in uris:
        host, _, port = uri.removeprefix("thrift://").rpartition(":")
        socket = TSocket.TSocket(host, int(port))
        socket.setTimeout(_SECONDS * 1000)
        transport = TTransport.TBufferedTransport(socket)
        try:
            transport.open()
        except (TTransport.TTransportException, OSError) as error:
            failed.append(f"{uri}: {getattr(error, 'message', None) or error}")
            continue
        return transport, ThriftHiveMetastore.Client(TBinaryProtocol.TBinaryProtocol(transport))
    raise CatalogError(
        f"no Hive metastore answers ({'; '.join(failed)}); start it, or set its address in "
        f"{CatalogOptions.uris.key}"
    )


def _columns(fields: Sequence[ttypes.FieldSchema] | None) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one.name, one.type, one.comment or "") for one in fields or ())


def _fields(columns: Sequence[CatalogColumn]) -> list[ttypes.FieldSchema]:
    from pymetastore.hive_metastore import ttypes

    return [ttypes.FieldSchema(one.name, one.type, one.comment) for one in columns]


def _described(table: CatalogTable) -> ttypes.StorageDescriptor:
    from pymetastore.hive_metastore import ttypes

    return ttypes.StorageDescriptor(
        cols=_fields(table.columns),
        location=table.location,
        inputFormat=table.input_format,
        outputFormat=table.output_format,
        serdeInfo=ttypes.SerDeInfo(None, table.serde, dict(table.serde_properties)),
        numBuckets=0,
        bucketCols=[],
        sortCols=[],
        parameters={},
    )

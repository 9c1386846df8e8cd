"""The data source ``hoodie_py``: what Spark sees of this library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hoodie_ds.config.enums import IncrementalFormat, Operation, QueryType
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.datasource.batch_writer import HoodieBatchWriter
from hoodie_ds.datasource.compat import arrow_schema
from hoodie_ds.datasource.reader import FilteringReader, HoodieReader
from hoodie_ds.datasource.stream_reader import HoodieStreamReader
from hoodie_ds.datasource.stream_writer import HoodieStreamWriter
from hoodie_ds.datasource.task import refuse_number
from hoodie_ds.errors import OptionError
from hoodie_ds.reader.declared_schema import check_declared
from hoodie_ds.reader.query import Query, open_query
from hoodie_ds.reader.table_stream import TableStream
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.storage.connect import storage_to_read

_OF_CATALOG: Final = {"owner", "provider"}
"""Options that Spark's catalog adds when a table is created."""

_NO_CATALOG: Final = "Spark's catalog does not pass a table's location to a Python data source"

_ONE_TABLE: Final = (
    "a read is of one table, as in Hudi; load each by itself and unite them with unionByName"
)

_WHAT_WORKS: Final = (
    "what works is load(path), save(path), start(path), option('path', path), and in SQL CREATE "
    "TEMPORARY VIEW name USING hoodie_py OPTIONS (path '...')"
)


class HoodieDataSource(DataSource):
    """Reads and writes Apache Hudi tables; registered as ``hoodie_py``.

    Options are Hudi's own (``hoodie.*``); ``path`` is the table's base path. ``conf/README.md``
    lists them.
    """

    _was_pickled = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Remember that another process made this one."""
        self.__dict__.update(state, _was_pickled=True)

    @classmethod
    def name(cls) -> str:
        """Return the name to give to ``format``."""
        return "hoodie_py"

    def schema(self) -> StructType:
        """Return the table's columns, the five ``_hoodie_*`` meta columns first.

        Raises
        ------
        OptionError
            Spark's catalog calls this, for a table that no query could read.
        """
        if {key.lower() for key in self.options} >= _OF_CATALOG:
            raise OptionError(
                "CREATE TABLE", f"USING {self.name()}", f"{_NO_CATALOG}; {_WHAT_WORKS}"
            )
        options = ReadOptions.parse(self._given(), is_stream=None)
        is_stream = (
            options.query_type is QueryType.INCREMENTAL
            or options.stream.format is not IncrementalFormat.LATEST_STATE
        )
        if is_stream and options.incremental is None:
            return from_arrow_schema(_stream(options).schema)
        return from_arrow_schema(_query(options).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a query, for the columns that the user declared."""
        options = ReadOptions.parse(self._given())
        query = _query(options)
        declared = arrow_schema(schema)
        check_declared(arrow_schema(from_arrow_schema(query.schema)), declared)
        kind = FilteringReader if options.filter_pushdown else HoodieReader
        return kind(query, declared)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of ``df.write``; mode ``overwrite`` is ``insert_overwrite_table``.

        Raises
        ------
        OptionError
            Rows to be deleted would take the table's place; or an option is refused.
        """
        options = self._write_options()
        if overwrite and options.operation is Operation.DELETE:
            raise OptionError(
                OperationOptions.operation.key,
                Operation.DELETE.value,
                "mode 'overwrite' would put the rows to be deleted in place of the table; "
                "give mode 'append'",
            )
        if overwrite and not (options.operation and options.operation.replaces):
            options = replace(options, operation=Operation.INSERT_OVERWRITE_TABLE)
        return HoodieBatchWriter(options, arrow_schema(schema))

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        """Return the writer of ``df.writeStream``; Spark calls this in every micro-batch."""
        if overwrite:
            raise OptionError("outputMode", "complete", "a stream is written in mode append")
        options = self._write_options()
        refuse_number(options)
        # Spark makes a data source to plan the tasks of a micro-batch, and sends one made when the
        # query started to the process that commits. Only the first begins a batch, and does so
        # here: what is raised while Spark pickles the writer becomes a PicklingError.
        if self._was_pickled:
            return HoodieStreamWriter(options)
        return HoodieStreamWriter(
            options, Coordinator.of(options).begin(arrow_schema(schema), is_stream=True)
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of ``spark.readStream``: what commits write, from one to the next.

        Raises
        ------
        OptionError
            An option is refused, or belongs to another query.
        """
        options = ReadOptions.parse(self._given(), is_stream=True)
        declared = arrow_schema(schema)
        check_declared(arrow_schema(from_arrow_schema(_stream(options).schema)), declared)
        return HoodieStreamReader(options, declared)

    def _write_options(self) -> WriteOptions:
        return WriteOptions.parse(self._given())

    def _given(self) -> Mapping[str, str]:
        """The options, with the location of a table as the path if Spark passes it."""
        given = {key.lower(): value for key, value in self.options.items()}
        if "paths" in given:
            raise OptionError("path", given["paths"], _ONE_TABLE)
        if given.get("path") is None:
            if "location" not in given:
                raise OptionError("path", None, f"give the table's folder; {_WHAT_WORKS}")
            return {**self.options, "path": given["location"]}
        return self.options


def _query(options: ReadOptions) -> Query:
    return open_query(storage_to_read(options), options)


def _stream(options: ReadOptions) -> TableStream:
    return TableStream(storage_to_read(options), options)

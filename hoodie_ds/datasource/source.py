"""The data source ``hoodie_py``: what Spark sees of this library."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hoodie_ds.config.kinds import Operation
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.datasource.batch_writer import HoodieBatchWriter
from hoodie_ds.datasource.compat import arrow_schema
from hoodie_ds.datasource.reader import HoodieReader
from hoodie_ds.datasource.stream_writer import HoodieStreamWriter
from hoodie_ds.datasource.task import refuse_number
from hoodie_ds.errors import OptionError
from hoodie_ds.reader.snapshot import Snapshot
from hoodie_ds.storage.connect import open_storage


class HoodieDataSource(DataSource):
    """Reads and writes Apache Hudi tables; registered as ``hoodie_py``.

    Options are Hudi's own (``hoodie.*``); ``path`` is the table's base path. See the option table
    in the README.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name to give to ``format``."""
        return "hoodie_py"

    def schema(self) -> StructType:
        """Return the table's columns, the five ``_hoodie_*`` meta columns first."""
        return from_arrow_schema(self._snapshot().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a snapshot query."""
        return HoodieReader(self._snapshot())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of ``df.write``; mode ``overwrite`` is ``insert_overwrite_table``."""
        options = self._write_options()
        if overwrite and not (options.operation and options.operation.replaces):
            options = replace(options, operation=Operation.INSERT_OVERWRITE_TABLE)
        return HoodieBatchWriter(options, arrow_schema(schema))

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        """Return the writer of ``df.writeStream``; Spark asks for one in every micro-batch."""
        if overwrite:
            raise OptionError("outputMode", "complete", "a stream is written in mode append")
        options = self._write_options()
        refuse_number(options)
        return HoodieStreamWriter(options, arrow_schema(schema))

    def _write_options(self) -> WriteOptions:
        return WriteOptions.parse(self.options)

    def _snapshot(self) -> Snapshot:
        options = ReadOptions.parse(self.options)
        storage = open_storage(
            options.base_path,
            options.storage_options,
            for_write=False,
            retry_ms=options.storage_retry_ms,
        )
        return Snapshot.latest(storage, options.merge_hook, options.verify_checksums)

"""``hoodie_ds.read``: a query as a DataFrame most of whose rows never leave the JVM.

Spark's own Parquet reader reads base files, with its column pruning and filters. For a file slice
with log files Python makes a bitmap of the base file's rows that log files replace, and the rows
that come in place of them; where whole rows are merged, of all rows whose keys are in log files.
Spark drops the rows of the bitmap, as it knows the position of each row that it reads. That is
exact for every merge rule, as no rule lets a record change a row of another key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from hoodie_ds.config.base_path import scheme_of
from hoodie_ds.config.file_options import StorageOptions
from hoodie_ds.config.option import without_spark
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.datasource.builders import query_settings
from hoodie_ds.datasource.compat import arrow_schema
from hoodie_ds.datasource.native_files import natively_readable, spark_path
from hoodie_ds.datasource.packing import Pack, in_tasks, packed, parallelism
from hoodie_ds.datasource.persisted import PERSISTED, TableState
from hoodie_ds.datasource.reader import BATCH_ROWS
from hoodie_ds.datasource.registration import register
from hoodie_ds.datasource.source import HoodieDataSource
from hoodie_ds.datasource.spark_filter import quoted, rows_that_match, with_nan
from hoodie_ds.filters.given import Filter, predicate_of
from hoodie_ds.filters.predicate import Predicate
from hoodie_ds.filters.rows import matching
from hoodie_ds.log import Log
from hoodie_ds.reader.declared_schema import declared_batches
from hoodie_ds.reader.logged_rows import LoggedRows
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.pruner import Pruner
from hoodie_ds.reader.query import open_query
from hoodie_ds.reader.scan_plan import Executor, ScanTask
from hoodie_ds.reader.scanner import chosen_columns
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.storage.connect import storage_to_read
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import Storage

_BASE_BYTES: Final = 64 << 30
"""Bytes of base files up to which bitmaps, a bit a row, are sent to every executor."""

_BYTES_PER_BIT: Final = 64
"""Bytes of a base file for which a bitmap counts as a byte."""

_STAYS: Final = """
CASE WHEN {bits} IS NULL THEN raise_error(
    concat('no rows are known to be replaced in the base file of ', {size}, ' bytes'))
ELSE bit_get({bits}[CAST(shiftright({row}, 6) AS INT)], CAST({row} & 63 AS INT)) = 0 END
"""

_READER: Final = {
    "recursiveFileLookup": "true",  # no columns from the names of folders
    "mergeSchema": "false",
    "ignoreMissingFiles": "false",  # never skip rows, whatever the session's default
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


def read(
    spark: SparkSession,
    path: str,
    options: Mapping[str, str] | None = None,
    *,
    columns: str | Iterable[str] | None = None,
    filter: Filter | None = None,
) -> DataFrame:
    """Return a table's rows as a DataFrame, at the speed of Spark's own Parquet reader.

    The rows are those of ``spark.read.format("hoodie_py")``, as the table is now: Spark reads base
    files itself, and only what log files have changed comes through Python. All columns are
    nullable. Spark verifies no checksums; with ``hoodie.py.read.verify.checksums`` = ``true`` every
    file is read through Python, which does. So are tables that Spark has no access to, and files
    that it cannot read into the table's columns. What Python makes of log files is persisted in
    Spark when it is read again, as far as ``hoodie.py.read.persist.max.size`` allows.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect. The table is looked up by this process, so it must have access to it.
    path : str
        The table's base path.
    options : mapping of str to str, optional
        Hudi's read options.
    columns : str or iterable of str, optional
        Columns to return; all if None. Of base files Spark reads only what the query needs anyway;
        rows that come through Python have all columns of the DataFrame.
    filter : Filter, optional
        Which rows to return, as for `HoodieTable.read`: tuples such as ``("city", "=", "oslo")`` or
        ``("fare", "in", [3, 4])``, strings such as ``"city = oslo"``, expressions of Arrow, or a
        list of these, all of which hold. Partitions and buckets that they rule out are not opened,
        except in incremental queries. A filter of the DataFrame comes too late for that: it prunes
        what Spark reads of each base file. Spark compares by strings and tuples; an expression of
        Arrow is evaluated in Python.

    Returns
    -------
    pyspark.sql.DataFrame

    Raises
    ------
    TableNotFoundError
        There is no table.
    OptionError
        An option or a filter is refused.
    SchemaError
        A column does not exist, or a filter does not fit the columns.
    """
    register(spark)
    given = {**query_settings(spark), **(options or {}), "path": path}
    parsed = ReadOptions.parse(given)
    storage = storage_to_read(parsed)
    query = open_query(storage, parsed)
    predicate = predicate_of(filter, query.schema, "filter", inexact=True)
    wanted, fetched = chosen_columns(query.schema, columns, predicate)
    schema, folder = pa.schema(map(query.schema.field, fetched)), None
    if isinstance(query, SnapshotQuery) and not _compares(given):
        folder = _folder(spark, storage, parsed.base_path)
    if folder is None or not isinstance(query, SnapshotQuery):
        reader = spark.read.format(HoodieDataSource.name()).options(**given)
        rows = (reader if columns is None else reader.schema(_nullable(schema))).load()
    else:
        plan = query.plan(predicate)
        most = 0 if query.pinned.merge_hook is not None else parsed.persist_max_bytes
        scan = _Scan(spark, query.pinned, folder, predicate, _nullable(schema), most, parsed.as_of)
        rows = scan.frame([*plan.tasks], plan.executor)
    found = rows_that_match(rows, predicate, schema)
    return found if wanted == fetched else found.select(*(quoted((name,)) for name in wanted))


def _nullable(schema: pa.Schema) -> StructType:
    """The columns of Spark, all nullable."""
    return StructType([StructField(f.name, f.dataType) for f in from_arrow_schema(schema)])


def _compares(given: Mapping[str, str]) -> bool:
    """Whether the user asks to verify files by their checksums."""
    asked = [
        text
        for key, text in given.items()
        if without_spark(key.strip()).lower() == StorageOptions.verify_checksums.key
    ]
    return any(str(text).strip().lower() == "true" for text in asked)


def _folder(spark: SparkSession, storage: Storage, base_path: str) -> str | None:
    """The table's folder as Spark opens it; None if it cannot."""
    if isinstance(storage, LocalStorage):
        return f"file://{storage.root}"
    place = base_path.rstrip("/")
    for folder in dict.fromkeys([place, f"s3a:{place.partition(':')[2]}"]):
        if folder.startswith("s3a:") and not scheme_of(place).startswith("s3"):
            continue
        try:
            properties = spark.read.format("binaryFile").load(f"{folder}/.hoodie/hoodie.properties")
            properties.select("length").collect()
        except (PySparkException, Py4JJavaError):
            continue
        return folder
    Log(place).info("Spark itself has no access to it: its files are read through Python")
    return None


@dataclass(frozen=True)
class _Scan:
    """A DataFrame of the slices of one table with some columns, all nullable.

    `folder` is the table's folder as Spark opens it. Rows that `predicate` rules out may be in it,
    but none that comes through Python. What Python makes of log files is persisted, up to
    `persist_max_bytes` of them.
    """

    spark: SparkSession
    pinned: PinnedTable
    folder: str
    predicate: Predicate
    schema: StructType
    persist_max_bytes: int
    as_of: str | None

    def frame(self, tasks: Sequence[ScanTask], executor: Executor) -> DataFrame:
        """Return the rows of all slices."""
        native = self._native(tasks)
        plain = [task for task in native if not task.slice.logs]
        merged = self._merged_natively([task for task in native if task.slice.logs])
        left = {task.slice.group for task in tasks}
        left -= {task.slice.group for task in chain(plain, merged)}
        whole = [task for task in tasks if task.slice.group in left]
        frames = []
        if plain:
            frames.append(with_nan(self._parquet(plain), self.schema))
        if merged:
            frames.append(self._kept(merged))
            # Not the plan's, which notes what it is asked: rows are persisted by what makes them.
            pruner = self.pinned.pruner(self.predicate)
            rows = SliceRows(self._logged, arrow_schema(self.schema), self.predicate, pruner)
            logged = self._persisted(rows, merged, self.schema, sum(map(_log_bytes, merged)))
            frames.append(with_nan(logged, self.schema))
        if whole or not frames:
            others = TaskRows(executor, arrow_schema(self.schema), self.predicate)
            frames.append(self._python(others, whole, self.schema))
        return reduce(DataFrame.unionAll, frames)

    def _native(self, tasks: Sequence[ScanTask]) -> list[ScanTask]:
        """The tasks whose base files Spark reads as we do."""
        names = [name.lower() for name in self.pinned.schema.names]
        if not names or len(set(names)) < len(names) or "_metadata" in names:
            return []
        found = (task.slice.base for task in tasks if task.slice.base is not None)
        history = self.pinned.history
        bases = [base for base in found if history.renaming(base.name.instant_time) is None]
        fit = natively_readable(self.pinned.table.storage, bases, self.pinned.schema)
        return [
            t for t in tasks if t.slice.base is not None and t.slice.base.name.instant_time in fit
        ]

    def _merged_natively(self, tasks: Sequence[ScanTask]) -> list[ScanTask]:
        """The slices with log files whose base rows are dropped by position.

        The keys must be in the files, which must differ in name or size, and log files must not be
        so large that they replace most rows.
        """
        if not self.pinned.table.properties.populate_meta_fields:
            return []
        chosen: dict[tuple[str, int], ScanTask] = {}
        budget = _BASE_BYTES
        for task in sorted(tasks, key=_log_bytes):
            assert task.slice.base is not None
            budget -= task.slice.base.size
            file = str(task.slice.base.name), task.slice.base.size
            if budget >= 0 and file not in chosen and _log_bytes(task) <= task.slice.base.size:
                chosen[file] = task
        return list(chosen.values())

    def _parquet(self, tasks: Sequence[ScanTask]) -> DataFrame:
        bases = [task.slice.base for task in tasks if task.slice.base is not None]
        paths = [spark_path(self.folder, base.path) for base in bases]
        return self.spark.read.schema(self.schema).options(**_READER).parquet(*paths)

    def _kept(self, tasks: Sequence[ScanTask]) -> DataFrame:
        """The rows of base files that their log files do not replace."""
        wanted = ("file_size", "row_index", "file_name", "log_base", "log_base_size", "log_bits")
        columns = [_unused(f"_hoodie_{name}", self.pinned.schema.names) for name in wanted]
        size, row, file, base, base_size, bits = columns
        sizes = [task.slice.base.size for task in tasks if task.slice.base is not None]
        by_name = len(set(sizes)) < len(sizes)
        metadata = zip(columns, wanted[: 2 + by_name], strict=False)
        rows = self._parquet(tasks).withColumns(
            {column: sf.expr(f"_metadata.{name}") for column, name in metadata}
        )
        rows = with_nan(rows, self.schema)  # above the join Spark would read whole structs
        of_bits = f"{base} string, {base_size} bigint, {bits} array<bigint>"
        bitmaps = SliceBitmaps(self._logged)
        replaced = self._persisted(bitmaps, tasks, of_bits, sum(sizes) // _BYTES_PER_BIT)
        same = f"{size} = {base_size}"  # one message to the JVM, where columns take a dozen each
        if by_name:
            # The join hashes a number; the name, many times as slow to hash, is compared only where
            # the number matches. Two comparisons in place of an equality keep it out of the hash.
            same += f" AND {file} <= {base} AND {file} >= {base}"
        stays = sf.expr(_STAYS.format(size=size, row=row, bits=bits))
        return rows.join(sf.broadcast(replaced), sf.expr(same), "left").where(stays).drop(*columns)

    def _python(
        self,
        rows: SliceRows | SliceBitmaps | TaskRows,
        tasks: Sequence[ScanTask],
        schema: StructType | str,
    ) -> DataFrame:
        """The rows that Python makes of packed tasks."""
        return self._packed(rows, packed(tasks, parallelism(self.spark)), schema)

    def _packed(
        self,
        rows: SliceRows | SliceBitmaps | TaskRows,
        packs: Sequence[Pack],
        schema: StructType | str,
    ) -> DataFrame:
        return in_tasks(self.spark, packs, partial(_of_each, rows), schema)

    def _persisted(
        self,
        rows: SliceRows | SliceBitmaps,
        tasks: Sequence[ScanTask],
        schema: StructType | str,
        size: int,
    ) -> DataFrame:
        """The rows that Python makes of slices with log files, made once."""
        packs = packed(tasks, parallelism(self.spark))
        make = partial(self._packed, rows, packs, schema)
        if not self.persist_max_bytes or not hasattr(self.spark, "_jvm"):
            return make()
        table = self.folder, self.as_of
        state = TableState.of(self.spark, table, self._logged)
        return PERSISTED.get(state, (rows, packs, schema), size, self.persist_max_bytes, make)

    @cached_property
    def _logged(self) -> LoggedRows:
        return LoggedRows(self.pinned.reader())


@dataclass(frozen=True)
class TaskRows:
    """The rows of a task that match, in the types that Spark expects."""

    executor: Executor
    columns: pa.Schema
    predicate: Predicate

    def __call__(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield them."""
        rows = self.executor.read(task, self.columns.names)
        pieces = (matching(piece, self.predicate) for piece in rows)
        yield from declared_batches(pieces, self.columns, BATCH_ROWS)


@dataclass(frozen=True)
class SliceRows:
    """The rows that match whose keys are in log files, in the types that Spark expects."""

    logged: LoggedRows
    columns: pa.Schema
    predicate: Predicate
    pruner: Pruner | None

    def __call__(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield them."""
        rows = self.logged.read(task.slice, self.columns.names, self.pruner)
        pieces = (matching(piece, self.predicate) for piece in rows)
        yield from declared_batches(pieces, self.columns, BATCH_ROWS)


@dataclass(frozen=True)
class SliceBitmaps:
    """The rows of base files that log files replace: bit ``n % 64`` of number ``n // 64``."""

    logged: LoggedRows

    def __call__(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield a row: the base file's name, its size, and the numbers."""
        base = task.slice.base
        assert base is not None
        mask = self.logged.replaced(task.slice)
        words = np.packbits(np.pad(mask, (0, -len(mask) % 64)), bitorder="little").view("<i8")
        bits = pa.array([words], pa.list_(pa.int64()))
        columns = [pa.array([str(base.name)]), pa.array([base.size]), bits]
        yield pa.record_batch(columns, ["base", "size", "bits"])


def _of_each(
    rows: SliceRows | SliceBitmaps | TaskRows, pack: Sequence[ScanTask]
) -> Iterator[pa.RecordBatch]:
    return chain.from_iterable(map(rows, pack))


def _log_bytes(task: ScanTask) -> int:
    return sum(log.size for log in task.slice.logs)


def _unused(name: str, names: Sequence[str]) -> str:
    """A name that no column has."""
    taken = {other.lower() for other in names}
    while name in taken:
        name += "_"
    return name

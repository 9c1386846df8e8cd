"""Checks a write against its options and the table, before anything is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from hoodie_ds.columns.meta_columns import (
    IS_DELETED,
    ROW_OPERATION,
    ROW_OPERATIONS,
    without_meta_columns,
)
from hoodie_ds.config.enums import Operation
from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.properties.table_properties import RECORD_INDEX, TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, SchemaError, UnsupportedTableError
from hoodie_ds.formats.avro.schema import arrow_to_avro, avro_to_arrow, normalise_schema
from hoodie_ds.log import Log
from hoodie_ds.metadata_table.record_index import check_indexable
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.schema import check_case, check_exact, evolve
from hoodie_ds.sink.hidden_columns import HIDDEN_COLUMNS
from hoodie_ds.sink.write_plan import WritePlan, needed_to_delete
from hoodie_ds.table.metadata_table import record_index
from hoodie_ds.table.numbering import with_numbers
from hoodie_ds.table.schema_on_read import NumberedColumns
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import added_columns, declared_schema, numbered_columns
from hoodie_ds.timeline.timeline import Timeline

_PANDAS_INDEX = re.compile(r"__index_level_[0-9]+__")


def resolve_operation(options: WriteOptions, properties: TableProperties) -> Operation:
    """Return the operation: the user's, else upsert with record keys and insert without."""
    keyed = bool(properties.record_key_fields)
    if options.operation is None:
        return Operation.UPSERT if keyed else Operation.INSERT
    if options.operation is Operation.DELETE_PARTITION and not properties.partition_fields:
        raise OptionError(
            OperationOptions.operation.key,
            options.operation.value,
            f"table {properties.name!r} has no partitions",
        )
    allowed = [operation for operation in Operation if keyed or not operation.merges]
    if options.operation not in allowed:
        names = ", ".join(operation.value for operation in allowed)
        raise OptionError(
            OperationOptions.operation.key,
            options.operation.value,
            f"table {properties.name!r} has no record keys; it allows {names}",
        )
    return options.operation


def warn_of_copies(plan: WritePlan) -> None:
    """Warn of a write that keeps copies of a key where Hudi has a record index of keys."""
    adds = not plan.looks_up and plan.operation is not Operation.DELETE_PARTITION
    if adds and plan.index is not None and record_index(plan.table):
        _warn_once(
            plan.table.storage.root,
            f"{plan.operation.value} does not look for stored keys, and "
            "Hudi cannot build the table's record index (record_index) again once a key is there "
            f"twice: upsert, or insert with {OperationOptions.duplicate_policy.key} = fail",
        )


def check_indexed_paths(table: Table, paths: Iterable[str]) -> None:
    """Refuse partitions that the table's record index of each partition cannot have."""
    has_index = RECORD_INDEX in table.properties.metadata_partitions
    for path in paths if has_index and record_index(table) == "partition" else ():
        check_indexable(table.storage.root, path)


def warn_of_no_index(plan: WritePlan) -> None:
    """Warn that keys are looked up in data files, as Hudi does, where there is no record index."""
    lacks = RECORD_INDEX not in plan.table.properties.metadata_partitions
    if lacks and plan.index is not None and plan.index.kind.is_record_index:
        _warn_once(
            plan.table.storage.root,
            f"there is no record index, so {plan.index.kind.value} looks keys up in all data "
            "files; a write makes it once no other is pending, unless options leave it out",
        )


def warn_of_new_columns(
    root: str, stored: pa.Schema | None, columns: pa.Schema, options: WriteOptions
) -> None:
    """Warn of columns that a batch adds, as nothing removes them again.

    `stored` and `columns` are the table's user columns before the batch, None without commits, and
    after it.
    """
    added = ", ".join(n for n in columns.names if stored is not None and n not in stored.names)
    if added:
        nulls = f"{FileOptions.set_null_for_missing_columns.key}=true gives them nulls"
        then = f"keep what is stored under their keys; {nulls}"
        if options.set_null_for_missing_columns:
            then = "get nulls"
        elif options.merge_hook is not None:
            then = f"are refused, unless {nulls}"
        text = f"a batch adds to the table: {added}; rows of batches without it {then}"
        _warn_once(root, text)


@lru_cache(maxsize=256)
def _warn_once(root: str, text: str) -> None:
    """Warn once per process."""
    Log(root).warning("%s", text)


def columns_to_keep(
    batch: pa.Schema,
    stored: pa.Schema | None,
    table: Table | None,
    timeline: Timeline,
    operation: Operation,
    options: WriteOptions,
) -> tuple[str, ...]:
    """Name the columns that a batch may lack, because an earlier batch has added them to the table.

    Older writers go on without them. Their rows keep the values that are stored under the same key;
    with a merge hook that is not possible.
    """
    deletes = operation in (Operation.DELETE, Operation.DELETE_PARTITION)
    decided = options.set_null_for_missing_columns or options.merge_hook is not None
    if table is None or stored is None or deletes or decided:
        return ()
    lacking = set(stored.names) - {*batch.names, IS_DELETED}
    return tuple(sorted(lacking & added_columns(table, timeline))) if lacking else ()


def stored_schema(
    batch: pa.Schema,
    stored: pa.Schema | None,
    properties: TableProperties,
    operation: Operation,
    options: WriteOptions,
    kept: Sequence[str] = (),
) -> pa.Schema:
    """Return the table's user columns once a batch is in, without meta and hidden columns.

    `stored` is None for a table without commits, and `kept` from `columns_to_keep`. There are no
    columns if partitions of a table without commits are deleted. `SchemaError` if a column cannot
    be stored, does not fit the table, or is missing.
    """
    columns = without_meta_columns(batch)
    known = () if stored is None else stored.names
    user = pa.schema([field for field in columns if not _is_foreign(field.name, known)])
    if operation is Operation.DELETE:  # other columns need not be such as can be stored
        user = needed_to_delete(user, properties)
    user = normalise_schema(user, stored)
    if operation is Operation.DELETE_PARTITION:
        if options.partitions_to_delete is None:
            check_fields(user, properties.partition_fields)
        return pa.schema([]) if stored is None else stored
    needed = {"record key": properties.record_key_fields, "partition": properties.partition_fields}
    if operation is not Operation.DELETE:
        needed["ordering"] = properties.ordering_fields
    for role, paths in needed.items():
        _check_role(user, role, paths, is_new=stored is None)
    _check_marks(user)
    # Through Avro and back: small integers get the types that they have in the table.
    arriving = avro_to_arrow(arrow_to_avro(user, properties.name))
    check_case(pa.schema([]) if stored is None else stored, arriving)
    if stored is None:
        return arriving
    check_exact(stored, arriving, properties.record_key_fields, "record key")
    check_exact(stored, arriving, properties.partition_fields, "partition")
    check_exact(stored, arriving, properties.ordering_fields, "ordering")
    if operation is Operation.DELETE:
        return stored
    arriving = pa.schema([*arriving, *(stored.field(name) for name in kept)])
    return evolve(stored, arriving, options.set_null_for_missing_columns)


def _is_foreign(name: str, stored: Collection[str]) -> bool:
    """Whether a column is not part of the rows: the shuffle's, or a nameless index of pandas."""
    index = _PANDAS_INDEX.fullmatch(name) is not None
    return name in HIDDEN_COLUMNS or (index and name not in stored)


def numbered_to_write(
    table: Table, timeline: Timeline, columns: pa.Schema, options: WriteOptions
) -> NumberedColumns | None:
    """Return the columns with their numbers once a batch is in, if they have numbers.

    `UnsupportedTableError` if keys and paths were made of columns that had other names, and
    `SchemaError` if a column that the batch adds cannot be numbered.
    """
    numbered, stored = numbered_columns(table, timeline), declared_schema(table, timeline)
    if numbered is None or stored is None:
        return None
    history, properties = numbered.history(), table.properties
    fields = (*properties.record_key_fields, *properties.partition_fields)
    if not history.keeps({path.partition(".")[0] for path in fields}):
        raise UnsupportedTableError(
            f"{table.storage.root}: a column of the record key or the partition path "
            f"({', '.join(fields)}) was renamed, so stored keys and paths are not those of the "
            "table's rows; write the rows into a new table"
        )
    if columns == stored:
        return numbered
    if options.batches_per_commit > 1:
        raise OptionError(
            OperationOptions.batches_per_commit.key,
            options.batches_per_commit,
            "columns are numbered by commits, and this batch adds some or widens them",
        )
    return replace(numbered, now=with_numbers(numbered.now, stored, columns))


def check_ordering(schema: pa.Schema, properties: TableProperties) -> None:
    """Refuse ordering fields that Hudi's readers cannot compare."""
    for path in properties.ordering_fields if schema.names else ():
        column = resolve(schema.empty_table(), path)
        if pa.types.is_binary(column.type) or pa.types.is_nested(column.type):
            raise SchemaError(
                f"ordering field {path!r} is {column.type}; Hudi orders by numbers, dates, "
                "timestamps, decimals and strings"
            )


def check_fields(schema: pa.Schema, needed: Iterable[str]) -> None:
    """Refuse a schema that lacks a field; name it and the fields there are."""
    empty = schema.empty_table()
    for path in needed:
        resolve(empty, path)


def _check_role(schema: pa.Schema, role: str, paths: Sequence[str], *, is_new: bool) -> None:
    """Check the fields of a role; the remedy is another one if the table has them."""
    try:
        check_fields(schema, paths)
    except SchemaError as error:
        more = "" if is_new else f"; every write needs those of the table, {', '.join(paths)}"
        raise SchemaError(f"{role} {error}{more}") from None


def _check_marks(schema: pa.Schema) -> None:
    if IS_DELETED in schema.names and not pa.types.is_boolean(schema.field(IS_DELETED).type):
        raise SchemaError(
            f"column {IS_DELETED!r} is {schema.field(IS_DELETED).type}; it marks deletes and "
            "must be boolean"
        )
    if ROW_OPERATION in schema.names:
        kind = schema.field(ROW_OPERATION).type
        if not pa.types.is_string(kind):
            raise SchemaError(
                f"column {ROW_OPERATION!r} is {kind}; it says which kind of change a row is "
                f"({', '.join(ROW_OPERATIONS)}) and must be a string"
            )

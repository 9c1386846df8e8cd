"""The five columns that Hudi puts in front of every row (Hudi tech spec, "meta fields")."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

COMMIT_TIME: Final = "_hoodie_commit_time"
COMMIT_SEQNO: Final = "_hoodie_commit_seqno"
RECORD_KEY: Final = "_hoodie_record_key"
PARTITION_PATH: Final = "_hoodie_partition_path"
FILE_NAME: Final = "_hoodie_file_name"

META_COLUMNS: Final = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""Names of the meta columns, in their order in a file."""

META_FIELDS: Final = tuple(pa.field(name, pa.string()) for name in META_COLUMNS)

IS_DELETED: Final = "_hoodie_is_deleted"
"""The user's boolean column that marks a row as a delete of its key."""

ROW_OPERATION: Final = "_hoodie_operation"
"""The column of Flink's changelog mode with a row's kind of change."""

ROW_OPERATIONS: Final = ("I", "U", "-U", "D")
"""Its values: insert, row after an update, row before an update, delete."""


def with_meta_columns(schema: pa.Schema) -> pa.Schema:
    """Put the five meta columns in front of a schema of user columns."""
    return pa.schema([*META_FIELDS, *without_meta_columns(schema)])


def without_meta_columns(schema: pa.Schema) -> pa.Schema:
    """Leave only the user's columns of a schema."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])

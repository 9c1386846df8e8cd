"""What users of other libraries look for in a table."""

from __future__ import annotations

from typing import Final

NAMES_OF_OTHERS: Final = {
    "add_columns": "alter() changes columns",
    "alias": "upsert(rows) merges rows by key",
    "append": "insert(rows) adds rows, upsert(rows) merges them by key",
    "create_checkpoint": "none is needed; archive() shortens the timeline",
    "current_snapshot": "timeline.completed has the commits",
    "drop": "delete(rows), delete_partitions(paths) delete; the table is its folder",
    "files": "inspect.files() has partitions and file groups with their files",
    "file_uris": "inspect.files() has partitions and file groups with their files",
    "get_add_actions": "inspect.files() has partitions and file groups with their files",
    "history": "inspect.commits() has what each commit did",
    "load_as_version": "read(as_of=...) reads an earlier moment",
    "metadata": "properties and inspect.show() have it",
    "optimize": "compact() merges log files, cluster() rewrites small files",
    "partitions": "inspect.files().partitions has them with their sizes",
    "refs": "savepoint() keeps a commit; timeline.savepoints has them",
    "snapshots": "timeline.completed has the commits",
    "to_arrow": "read() returns an Arrow table",
    "to_polars": "polars.DataFrame(table) takes it",
    "to_pyarrow_dataset": "scan() streams rows, with columns and a filter",
    "to_pyarrow_table": "read() returns an Arrow table",
    "update_schema": "alter() changes columns",
    "vacuum": "clean() deletes old files",
    "version": "timeline.completed has the commits",
    "write": "insert(rows) adds rows, upsert(rows) merges them by key",
}
"""Method names of other libraries, and their counterparts here."""

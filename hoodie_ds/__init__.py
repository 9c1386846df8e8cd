"""Exactly-once streaming into Apache Hudi tables from PySpark, in pure Python.

`register` makes the data source ``hoodie_py`` known to a Spark session; `shuffle_by_file_group`
sends each row to the task that owns its file group; `foreach_batch` writes where no data source
can be registered; `HoodieTable` works without Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hoodie_ds.errors import HoodieError
from hoodie_ds.hoodie_table import HoodieTable
from hoodie_ds.record.merge_hook import Merged, MergeHook

if TYPE_CHECKING:
    from hoodie_ds.datasource.commit_listener import CommitListener
    from hoodie_ds.datasource.foreach_batch import foreach_batch
    from hoodie_ds.datasource.registration import register
    from hoodie_ds.datasource.shuffle import shuffle_by_file_group
    from hoodie_ds.datasource.source import HoodieDataSource

__version__ = "0.1.0"

__all__ = [
    "CommitListener",
    "HoodieDataSource",
    "HoodieError",
    "HoodieTable",
    "MergeHook",
    "Merged",
    "__version__",
    "foreach_batch",
    "register",
    "shuffle_by_file_group",
]

_FROM_SPARK = {
    "CommitListener": "hoodie_ds.datasource.commit_listener",
    "HoodieDataSource": "hoodie_ds.datasource.source",
    "foreach_batch": "hoodie_ds.datasource.foreach_batch",
    "register": "hoodie_ds.datasource.registration",
    "shuffle_by_file_group": "hoodie_ds.datasource.shuffle",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import what needs PySpark only when it is asked for: the rest works without it."""
    module = _FROM_SPARK.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)

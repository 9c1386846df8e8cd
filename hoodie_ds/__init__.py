"""Exactly-once streaming into Apache Hudi tables from PySpark, in pure Python.

`register` makes the data source ``hoodie_py`` known to a Spark session; `read` returns a table as a
DataFrame at the speed of Spark's own Parquet reader; `shuffle_by_file_group`
sends each row to the task that owns its file group; `foreach_batch` writes where no data source
can be registered; `run_services` runs table services as a job; `HoodieTable` works without Spark,
and `scan_hudi` gives Polars a table.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CatalogError,
    ClusteringConflictError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    DeltaSyncError,
    HoodieError,
    LockTimeoutError,
    MergeCardinalityError,
    MergeHookError,
    MissedBatchesError,
    MissingPackageError,
    NotFoundError,
    OptionError,
    OutOfSpaceError,
    PathEscapeError,
    RecordKeyError,
    ReplayMismatchError,
    SchemaError,
    StorageError,
    TableNotFoundError,
    TimelineError,
    UnavailableError,
    UnsupportedTableError,
    WriteConflictError,
)

if TYPE_CHECKING:
    from hoodie_ds.api.hoodie_table import HoodieTable
    from hoodie_ds.api.polars_scan import scan_hudi
    from hoodie_ds.api.table_alteration import TableAlteration
    from hoodie_ds.api.table_merge import TableMerge
    from hoodie_ds.config.properties.table_properties import TableProperties
    from hoodie_ds.config.service_switches import Service
    from hoodie_ds.datasource.commit_listener import CommitListener
    from hoodie_ds.datasource.foreach_batch import foreach_batch
    from hoodie_ds.datasource.registration import register
    from hoodie_ds.datasource.row_changes import delete, update
    from hoodie_ds.datasource.row_merges import merge
    from hoodie_ds.datasource.scan import read
    from hoodie_ds.datasource.services_job import ServicesResult, run_services
    from hoodie_ds.datasource.shuffle import shuffle_by_file_group
    from hoodie_ds.datasource.source import HoodieDataSource
    from hoodie_ds.filters.given import Filter
    from hoodie_ds.filters.sql_expression import expr
    from hoodie_ds.inspection.changes import TableDiff
    from hoodie_ds.inspection.commit_metrics import MetricsSink
    from hoodie_ds.inspection.files import TableFiles
    from hoodie_ds.inspection.inspector import Inspector
    from hoodie_ds.inspection.listing import Listing
    from hoodie_ds.inspection.overview import TableOverview
    from hoodie_ds.inspection.verify import Verification
    from hoodie_ds.reader.scanner import Scanner
    from hoodie_ds.record.merge.merge_hook import Merged, MergeHook
    from hoodie_ds.services.failures import ServiceFailure
    from hoodie_ds.services.metadata_partitions import MetadataChange
    from hoodie_ds.services.orphans import Orphans
    from hoodie_ds.services.results import Cleaning, Clustering, Compaction, ServiceResult, Work
    from hoodie_ds.services.savepoint import Savepoint
    from hoodie_ds.services.undoing import Loss, Undoing
    from hoodie_ds.services.upgrade.version_change import VersionChange
    from hoodie_ds.sink.bucket_rescale import BucketRescale
    from hoodie_ds.sink.messages import WriteResult
    from hoodie_ds.sink.table_alteration import Alteration
    from hoodie_ds.sync.delta.sync import DeltaSync
    from hoodie_ds.sync.results import CatalogSync, TableSync
    from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan
    from hoodie_ds.timeline.bodies.clustering_plan import ClusteringPlan
    from hoodie_ds.timeline.bodies.compaction_plan import CompactionPlan
    from hoodie_ds.timeline.instant import Instant
    from hoodie_ds.timeline.timeline import Timeline

__version__ = "0.1.0"

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "Alteration",
    "BucketRescale",
    "CatalogError",
    "CatalogSync",
    "CleanerPlan",
    "Cleaning",
    "Clustering",
    "ClusteringConflictError",
    "ClusteringPlan",
    "CommitListener",
    "CommitOutcomeUnknownError",
    "Compaction",
    "CompactionPlan",
    "CorruptFileError",
    "DeltaSync",
    "DeltaSyncError",
    "Filter",
    "HoodieDataSource",
    "HoodieError",
    "HoodieTable",
    "Inspector",
    "Instant",
    "Listing",
    "LockTimeoutError",
    "Loss",
    "MergeCardinalityError",
    "MergeHook",
    "MergeHookError",
    "Merged",
    "MetadataChange",
    "MetricsSink",
    "MissedBatchesError",
    "MissingPackageError",
    "NotFoundError",
    "OptionError",
    "Orphans",
    "OutOfSpaceError",
    "PathEscapeError",
    "RecordKeyError",
    "ReplayMismatchError",
    "Savepoint",
    "Scanner",
    "SchemaError",
    "Service",
    "ServiceFailure",
    "ServiceResult",
    "ServicesResult",
    "StorageError",
    "TableAlteration",
    "TableDiff",
    "TableFiles",
    "TableMerge",
    "TableNotFoundError",
    "TableOverview",
    "TableProperties",
    "TableSync",
    "Timeline",
    "TimelineError",
    "UnavailableError",
    "Undoing",
    "UnsupportedTableError",
    "Verification",
    "VersionChange",
    "Work",
    "WriteConflictError",
    "WriteResult",
    "__version__",
    "delete",
    "expr",
    "foreach_batch",
    "merge",
    "read",
    "register",
    "run_services",
    "scan_hudi",
    "shuffle_by_file_group",
    "update",
]

_MODULES = {
    "Alteration": "hoodie_ds.sink.table_alteration",
    "BucketRescale": "hoodie_ds.sink.bucket_rescale",
    "CatalogSync": "hoodie_ds.sync.results",
    "CleanerPlan": "hoodie_ds.timeline.bodies.clean_metadata",
    "Cleaning": "hoodie_ds.services.results",
    "Clustering": "hoodie_ds.services.results",
    "ClusteringPlan": "hoodie_ds.timeline.bodies.clustering_plan",
    "CommitListener": "hoodie_ds.datasource.commit_listener",
    "Compaction": "hoodie_ds.services.results",
    "CompactionPlan": "hoodie_ds.timeline.bodies.compaction_plan",
    "DeltaSync": "hoodie_ds.sync.delta.sync",
    "Filter": "hoodie_ds.filters.given",
    "HoodieDataSource": "hoodie_ds.datasource.source",
    "HoodieTable": "hoodie_ds.api.hoodie_table",
    "Inspector": "hoodie_ds.inspection.inspector",
    "Instant": "hoodie_ds.timeline.instant",
    "Listing": "hoodie_ds.inspection.listing",
    "Loss": "hoodie_ds.services.undoing",
    "MergeHook": "hoodie_ds.record.merge.merge_hook",
    "Merged": "hoodie_ds.record.merge.merge_hook",
    "MetadataChange": "hoodie_ds.services.metadata_partitions",
    "MetricsSink": "hoodie_ds.inspection.commit_metrics",
    "Orphans": "hoodie_ds.services.orphans",
    "Savepoint": "hoodie_ds.services.savepoint",
    "Scanner": "hoodie_ds.reader.scanner",
    "Service": "hoodie_ds.config.service_switches",
    "ServiceFailure": "hoodie_ds.services.failures",
    "ServiceResult": "hoodie_ds.services.results",
    "ServicesResult": "hoodie_ds.datasource.services_job",
    "TableDiff": "hoodie_ds.inspection.changes",
    "TableFiles": "hoodie_ds.inspection.files",
    "TableAlteration": "hoodie_ds.api.table_alteration",
    "TableMerge": "hoodie_ds.api.table_merge",
    "TableOverview": "hoodie_ds.inspection.overview",
    "TableProperties": "hoodie_ds.config.properties.table_properties",
    "TableSync": "hoodie_ds.sync.results",
    "Timeline": "hoodie_ds.timeline.timeline",
    "Undoing": "hoodie_ds.services.undoing",
    "Verification": "hoodie_ds.inspection.verify",
    "VersionChange": "hoodie_ds.services.upgrade.version_change",
    "Work": "hoodie_ds.services.results",
    "WriteResult": "hoodie_ds.sink.messages",
    "delete": "hoodie_ds.datasource.row_changes",
    "expr": "hoodie_ds.filters.sql_expression",
    "foreach_batch": "hoodie_ds.datasource.foreach_batch",
    "merge": "hoodie_ds.datasource.row_merges",
    "read": "hoodie_ds.datasource.scan",
    "register": "hoodie_ds.datasource.registration",
    "run_services": "hoodie_ds.datasource.services_job",
    "scan_hudi": "hoodie_ds.api.polars_scan",
    "shuffle_by_file_group": "hoodie_ds.datasource.shuffle",
    "update": "hoodie_ds.datasource.row_changes",
}


def __getattr__(name: str) -> _Any:  # noqa: ANN401
    """Import a public name when it is asked for: some need PySpark, and all of them take time."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(_import_module(module), name)
    return found


def __dir__() -> list[str]:
    """Return the public names, those that are not imported yet among them."""
    return sorted({*__all__, "errors", *(name for name in globals() if name.startswith("__"))})

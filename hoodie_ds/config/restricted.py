"""Known options that ask for something this release does not do yet.

Such an option is accepted when its value asks for what happens anyway, and refused otherwise:
silently ignoring it would store or return something else than the user asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie_ds.config.bucket_rules import RULE_TYPE

_FALSE: Final = ("false",)
_NEVER: Final[tuple[str, ...]] = ()

WRITE_RESTRICTED: Final[Mapping[str, tuple[str, ...]]] = {
    # What a row or file looks like.
    "hoodie.datasource.write.drop.partition.columns": _FALSE,
    "hoodie.datasource.write.slash.separated.date.partitioning": _FALSE,
    "hoodie.populate.meta.fields": ("true",),
    "hoodie.allow.operation.metadata.field": _FALSE,
    "hoodie.table.base.file.format": ("parquet",),
    "hoodie.table.timeline.timezone": ("utc",),
    "hoodie.table.cdc.enabled": _FALSE,
    "cdc.enabled": _FALSE,
    "changelog.enabled": _FALSE,
    "partition.default_name": ("__hive_default_partition__",),
    "write.utc-timezone": ("true",),
    # Which rows survive.
    "hoodie.write.record.merge.custom.implementation.classes": _NEVER,
    "hoodie.write.record.merge.strategy.id": _NEVER,
    "record.merger.impls": _NEVER,
    "record.merger.strategy": _NEVER,
    "hoodie.combine.before.upsert": ("true",),
    "hoodie.datasource.write.reconcile.schema": _FALSE,
    "hoodie.datasource.write.streaming.ignore.failed.batch": _FALSE,
    "write.ignore.failed": _FALSE,
    # Which file groups a write touches.
    "hoodie.index.bucket.engine": ("simple",),
    "hoodie.bucket.index.partition.rule.type": (RULE_TYPE,),
    "hoodie.datasource.overwrite.mode": _NEVER,
    "write.partition.overwrite.mode": ("static",),
    "write.insert.cluster": _FALSE,
    # Commits and other writers.
    "hoodie.write.lock.filesystem.path": _NEVER,
    "hoodie.prewrite.cleaner.policy": ("none", "rollback_failed_writes"),
    "hoodie.precommit.validators": ("",),
    "hoodie.write.rolling.metadata.keys": ("",),
    # Table services and catalogs.
    "hoodie.clean.automatic": _FALSE,
    "hoodie.clean.async": _FALSE,
    "hoodie.clean.async.enabled": _FALSE,
    "clean.async.enabled": _FALSE,
    "hoodie.archive.automatic": _FALSE,
    "hoodie.archive.async": _FALSE,
    "hoodie.compact.inline": _FALSE,
    "hoodie.compact.schedule.inline": _FALSE,
    "hoodie.datasource.compaction.async.enable": _FALSE,
    "compaction.schedule.enabled": _FALSE,
    "compaction.async.enabled": _FALSE,
    "hoodie.log.compaction.inline": _FALSE,
    "hoodie.clustering.inline": _FALSE,
    "hoodie.clustering.async.enabled": _FALSE,
    "clustering.schedule.enabled": _FALSE,
    "clustering.async.enabled": _FALSE,
    "hoodie.datasource.meta.sync.enable": _FALSE,
    "hoodie.datasource.hive_sync.enable": _FALSE,
    "hive_sync.enabled": _FALSE,
}
"""Key to the values, in lower case, that ask for what a write does anyway."""

READ_RESTRICTED: Final[Mapping[str, tuple[str, ...]]] = {
    "as.of.instant": _NEVER,
    "hoodie.datasource.read.begin.instanttime": _NEVER,
    "hoodie.datasource.read.end.instanttime": _NEVER,
    "hoodie.datasource.read.paths": _NEVER,
    "hoodie.datasource.merge.type": ("payload_combine",),
    "hoodie.datasource.query.incremental.format": ("latest_state",),
    "hoodie.datasource.streaming.startOffset": ("earliest",),
    "read.streaming.enabled": _FALSE,
    "read.start-commit": _NEVER,
    "read.end-commit": _NEVER,
    "read.utc-timezone": ("true",),
}
"""Key to the values, in lower case, that ask for what a read does anyway."""

BOTH_RESTRICTED: Final[Mapping[str, tuple[str, ...]]] = {
    "hoodie.schema.on.read.enable": _FALSE,
}
"""The same for reads and writes."""

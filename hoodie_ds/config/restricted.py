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
_MERGERS: Final = (
    # They merge as the table's merge mode or payload says, which is what is done here.
    "org.apache.hudi.defaultsparkrecordmerger",
    "org.apache.hudi.hoodiesparkrecordmerger",
    "org.apache.hudi.common.model.hoodieavrorecordmerger",
)

_DATE_TIME_PARSERS: Final = ("org.apache.hudi.keygen.parser.hoodiedatetimeparser",)
_OF_ENGINES: Final = (
    "hoodie.table.checksum",
    "hoodie.table.create.schema",
    "hoodie.table.index.defs.path",
    "hoodie.table.initial.version",
    "hoodie.table.legacy.payload.class",
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.partition_extractor_class",
    "hoodie.table.secondary.indexes.metadata",
)
"""Properties that whoever makes a table or an index writes down, and no option of a write."""

WRITE_RESTRICTED: Final[Mapping[str, tuple[str, ...]]] = {
    # What a row or file looks like.
    "hoodie.datasource.write.drop.partition.columns": _FALSE,
    "hoodie.datasource.write.slash.separated.date.partitioning": _FALSE,
    "hoodie.allow.operation.metadata.field": _FALSE,
    "hoodie.table.base.file.format": ("parquet",),
    "hoodie.base.file.format": ("parquet",),
    "hoodie.table.ro.file.format": ("parquet",),
    "hoodie.table.multiple.base.file.formats.enable": _FALSE,
    "hoodie.table.log.file.format": ("hoodie_log",),
    "hoodie.table.rt.file.format": ("hoodie_log",),
    "hoodie.table.format": ("native",),
    "hoodie.meta.fields.mode": ("all",),
    "hoodie.parquet.write.utc-timezone.enabled": ("true",),
    "hoodie.parquet.outputtimestamptype": ("timestamp_micros",),
    "hoodie.partition.metafile.use.base.format": _FALSE,
    "hoodie.assume.date.partitioning": _FALSE,
    "hoodie.avro.schema": _NEVER,
    "hoodie.write.schema": _NEVER,
    "hoodie.internal.schema": _NEVER,
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": _FALSE,
    "hoodie.table.timeline.timezone": ("utc",),
    "hoodie.keygen.datetime.parser.class": _DATE_TIME_PARSERS,
    "hoodie.deltastreamer.keygen.datetime.parser.class": _DATE_TIME_PARSERS,
    "hoodie.timeline.path": ("timeline",),
    "hoodie.timeline.history.path": ("history",),
    "hoodie.archivelog.folder": ("archived",),
    **dict.fromkeys(_OF_ENGINES, _NEVER),
    "changelog.enabled": _FALSE,
    "partition.default_name": ("__hive_default_partition__",),
    "write.utc-timezone": ("true",),
    # Which rows survive.
    "hoodie.write.record.merge.custom.implementation.classes": _MERGERS,
    "hoodie.datasource.write.record.merger.impls": _MERGERS,
    "record.merger.impls": _MERGERS,
    "hoodie.write.record.merge.strategy.id": _NEVER,
    "hoodie.datasource.write.record.merger.strategy": _NEVER,
    "hoodie.record.merge.strategy.id": _NEVER,
    "hoodie.compaction.record.merger.strategy": _NEVER,
    "record.merger.strategy": _NEVER,
    "hoodie.write.partial.update.schema": _NEVER,
    "hoodie.combine.before.upsert": ("true",),
    "hoodie.merge.allow.duplicate.on.inserts": ("true",),
    "hoodie.datasource.hive_sync.use_jdbc": _FALSE,
    "hive_sync.use_jdbc": _FALSE,
    "hoodie.errortable.enable": _FALSE,
    "hoodie.partition.ttl.inline": _FALSE,
    "hoodie.bootstrap.base.path": _NEVER,
    "hoodie.datasource.write.reconcile.schema": _FALSE,
    "hoodie.datasource.write.streaming.ignore.failed.batch": _FALSE,
    "hoodie.write.ignore.failed": _FALSE,
    "write.ignore.failed": _FALSE,
    # Which file groups a write touches.
    "hoodie.index.class": _NEVER,
    "hoodie.index.bucket.engine": ("simple",),
    "hoodie.bucket.index.partition.rule.type": (RULE_TYPE,),
    "hoodie.datasource.overwrite.mode": _NEVER,
    "hoodie.static.overwrite.partition.paths": ("",),
    "hoodie.compaction.partition.path.regex": _NEVER,
    "write.partition.overwrite.mode": ("static",),
    "write.insert.cluster": _FALSE,
    # Commits and other writers.
    "hoodie.write.lock.filesystem.path": _NEVER,
    "hoodie.prewrite.cleaner.policy": ("none", "rollback_failed_writes"),
    "hoodie.precommit.validators": ("",),
    "hoodie.prewrite.validators": ("",),
    "hoodie.client.init.callback.classes": ("",),
    "hoodie.metaserver.enabled": _FALSE,
    "hoodie.table.service.manager.enabled": _FALSE,
    "hoodie.write.rolling.metadata.keys": ("",),
    "hoodie.clean.trigger.strategy": ("num_commits",),
    "hoodie.cleaner.trigger.strategy": ("num_commits",),
}
"""Key to the values, in lower case, that ask for what a write does anyway."""

_MOMENTS: Final = ("snapshot-id", "as-of-timestamp")
_RANGES: Final = ("readChangeFeed", "readChangeData", "start-snapshot-id", "end-snapshot-id")
_STARTS: Final = ("startingVersion", "startingTimestamp", "stream-from-timestamp")

READ_RESTRICTED: Final[Mapping[str, tuple[str, ...]]] = {
    "hoodie.datasource.read.paths": _NEVER,
    "hoodie.datasource.merge.type": ("payload_combine",),
    "hoodie.read.blob.inline.mode": ("descriptor",),
    "hoodie.datasource.read.extract.partition.values.from.path": _FALSE,
    "hoodie.datasource.read.partition.value.extractor.enabled": _FALSE,
    "hoodie.datasource.read.create.filesystem.relation": _FALSE,
    "hoodie.datasource.read.table.valued.function.timeline.relation": _FALSE,
    "hoodie.datasource.read.table.valued.function.timeline.relation.archived": _FALSE,
    "hoodie.datasource.read.table.valued.function.filesystem.relation.subpath": ("",),
    "hoodie.datasource.read.incr.filters": ("",),
    "read.streaming.enabled": _FALSE,
    "read.start-commit": _NEVER,
    "read.end-commit": _NEVER,
    "read.utc-timezone": ("true",),
    **dict.fromkeys((*_MOMENTS, *_RANGES, *_STARTS), _NEVER),
}
"""Key to the values, in lower case, that ask for what a read does anyway; also names of Delta and
Iceberg, which would be passed over as if they were Spark's own."""

BOTH_RESTRICTED: Final[Mapping[str, tuple[str, ...]]] = {
    "hoodie.schema.on.read.enable": _FALSE,
}
"""The same for reads and writes."""

_MERGE: Final = (
    "say hoodie.write.record.merge.mode, or name a function of yours in hoodie.py.merge.hook"
)

_CLEAN_TRIGGER: Final = (
    "NUM_COMMITS is the only one; hoodie.clean.trigger.max.commits says after how many commits"
)

INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(_MOMENTS, "as.of.instant says the moment of a time travel query"),
    **dict.fromkeys(
        _RANGES,
        "hoodie.datasource.query.type=incremental asks for what commits wrote since "
        "hoodie.datasource.read.begin.instanttime, and with "
        "hoodie.datasource.query.incremental.format=cdc for their changes",
    ),
    **dict.fromkeys(
        _STARTS,
        "hoodie.datasource.streaming.startOffset says where a stream begins, and "
        "hoodie.datasource.read.begin.instanttime where an incremental query does",
    ),
    "hoodie.clean.trigger.strategy": _CLEAN_TRIGGER,
    "hoodie.cleaner.trigger.strategy": _CLEAN_TRIGGER,
    "hoodie.datasource.write.drop.partition.columns": "the columns stay in the files; use 'false'",
    "hoodie.datasource.write.reconcile.schema": "hoodie.write.set.null.for.missing.columns=true "
    "fills columns that a batch lacks; new ones are added anyway",
    "hoodie.datasource.overwrite.mode": "say hoodie.datasource.write.operation=insert_overwrite "
    "(dynamic) or insert_overwrite_table",
    "hoodie.merge.allow.duplicate.on.inserts": "hoodie.datasource.insert.dup.policy=drop or fail",
    "hoodie.combine.before.upsert": "rows of one key are always combined by an upsert; an insert "
    "keeps them",
    "hoodie.write.record.merge.custom.implementation.classes": _MERGE,
    "hoodie.datasource.write.record.merger.impls": _MERGE,
    "record.merger.impls": _MERGE,
    "hoodie.write.record.merge.strategy.id": _MERGE,
    "hoodie.datasource.write.record.merger.strategy": _MERGE,
    "record.merger.strategy": _MERGE,
    "hoodie.record.merge.strategy.id": _MERGE,
    "hoodie.compaction.record.merger.strategy": _MERGE,
    "hoodie.index.class": "say hoodie.index.type",
    "hoodie.meta.fields.mode": "it belongs to table version 10; "
    "hoodie.populate.meta.fields=false is NONE; use 'ALL' or leave it out",
    "hoodie.write.ignore.failed": "a write that fails stores nothing; use 'false'",
    **dict.fromkeys(
        _OF_ENGINES, "the table's own hoodie.properties hold it; leave it out of the options"
    ),
    "hoodie.avro.schema": "the rows' own columns are the schema; leave it out",
    "hoodie.write.schema": "the rows' own columns are the schema; leave it out",
    "hoodie.datasource.read.incr.filters": "filter the rows that the query returns; leave it out",
    "hoodie.errortable.enable": "split bad rows off before the write; leave it out",
    "hoodie.partition.ttl.inline": "delete old partitions with delete_partition; leave it out",
}
"""Key to what does the same here, or what to do."""

REFUSED_PREFIXES: Final[Mapping[str, str]] = {
    "hoodie.deltastreamer.transformer.": "transform the rows before they are written",
    "hoodie.streamer.transformer.": "transform the rows before they are written",
}
"""Families of keys that ask for other rows than those that are handed over."""

RETIRED: Final[Mapping[str, str]] = {
    "hoodie.base.path": "path",
    "hoodie.table.partition.columns": "hoodie.datasource.write.partitionpath.field",
}
"""Names of earlier releases, or of other layers of Hudi, to what the option is called here."""

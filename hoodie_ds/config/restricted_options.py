"""Known options that ask for something this release does not do yet.

Such an option is accepted when its value asks for what happens anyway, and refused otherwise:
silently ignoring it would store or return something else than the user asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from hoodie_ds.config.bucket_rules import RULE_TYPE


class Restriction(NamedTuple):
    """What is accepted of an option, and what to do instead.

    Parameters
    ----------
    accepted : tuple of str
        The values, in lower case, that ask for what happens anyway.
    instead : str or None
        What does the same here, or what to do; where None, one of the accepted values.
    """

    accepted: tuple[str, ...] = ()
    instead: str | None = None

    @property
    def remedy(self) -> str:
        """What a message advises."""
        if self.instead is not None:
            return self.instead
        return f"use {' or '.join(map(repr, self.accepted))}" if self.accepted else "leave it out"


def _only(accepted: str, keys: str, instead: str | None = None) -> dict[str, Restriction]:
    return dict.fromkeys(keys.split(), Restriction(tuple(accepted.split()) or ("",), instead))


def _never(keys: str, instead: str | None = None) -> dict[str, Restriction]:
    return dict.fromkeys(keys.split(), Restriction((), instead))


_MERGE: Final = (
    "say hoodie.write.record.merge.mode, or name a function of yours in hoodie.py.merge.hook"
)

WRITE_RESTRICTED: Final[Mapping[str, Restriction]] = {
    # What a row or file looks like.
    **_only(
        "false",
        "hoodie.datasource.write.drop.partition.columns",
        "the columns stay in the files; use 'false'",
    ),
    **_only(
        "false",
        """
        hoodie.datasource.write.slash.separated.date.partitioning
        hoodie.allow.operation.metadata.field hoodie.table.multiple.base.file.formats.enable
        hoodie.partition.metafile.use.base.format hoodie.assume.date.partitioning
        hoodie.datasource.write.schema.allow.auto.evolution.column.drop changelog.enabled
        """,
    ),
    **_only(
        "parquet",
        "hoodie.table.base.file.format hoodie.base.file.format hoodie.table.ro.file.format",
    ),
    **_only("hoodie_log", "hoodie.table.log.file.format hoodie.table.rt.file.format"),
    **_only("native", "hoodie.table.format"),
    **_only(
        "all",
        "hoodie.meta.fields.mode",
        "it belongs to table version 10; hoodie.populate.meta.fields=false is NONE; use 'ALL' or "
        "leave it out",
    ),
    **_only("true", "hoodie.parquet.write.utc-timezone.enabled write.utc-timezone"),
    **_only("timestamp_micros", "hoodie.parquet.outputtimestamptype"),
    **_never(
        "hoodie.avro.schema hoodie.write.schema",
        "the rows' own columns are the schema; leave it out",
    ),
    **_never("hoodie.internal.schema"),
    **_only("utc", "hoodie.table.timeline.timezone"),
    **_only(
        "org.apache.hudi.keygen.parser.hoodiedatetimeparser",
        "hoodie.keygen.datetime.parser.class hoodie.deltastreamer.keygen.datetime.parser.class",
    ),
    **_only("timeline", "hoodie.timeline.path"),
    **_only("history", "hoodie.timeline.history.path"),
    **_only("archived", "hoodie.archivelog.folder"),
    **_never(
        """
        hoodie.table.checksum hoodie.table.create.schema hoodie.table.index.defs.path
        hoodie.table.initial.version hoodie.table.legacy.payload.class
        hoodie.table.metadata.partitions hoodie.table.metadata.partitions.inflight
        hoodie.table.partition_extractor_class hoodie.table.secondary.indexes.metadata
        """,
        "the table's own hoodie.properties hold it; leave it out of the options",
    ),
    **_only("__hive_default_partition__", "partition.default_name"),
    # Which rows survive. The mergers go by the table's merge mode or payload, as is done here.
    **_only(
        """
        org.apache.hudi.defaultsparkrecordmerger org.apache.hudi.hoodiesparkrecordmerger
        org.apache.hudi.common.model.hoodieavrorecordmerger
        """,
        """
        hoodie.write.record.merge.custom.implementation.classes
        hoodie.datasource.write.record.merger.impls record.merger.impls
        """,
        _MERGE,
    ),
    **_never(
        """
        hoodie.write.record.merge.strategy.id hoodie.datasource.write.record.merger.strategy
        hoodie.record.merge.strategy.id hoodie.compaction.record.merger.strategy
        record.merger.strategy
        """,
        _MERGE,
    ),
    **_never("hoodie.write.partial.update.schema hoodie.bootstrap.base.path"),
    **_only(
        "true",
        "hoodie.combine.before.upsert",
        "rows of one key are always combined by an upsert; an insert keeps them",
    ),
    **_only(
        "true",
        "hoodie.merge.allow.duplicate.on.inserts",
        "hoodie.datasource.insert.dup.policy=drop or fail",
    ),
    **_only(
        "false", "hoodie.errortable.enable", "split bad rows off before the write; leave it out"
    ),
    **_only(
        "false",
        "hoodie.partition.ttl.inline",
        "delete old partitions with delete_partition; leave it out",
    ),
    **_only(
        "false",
        "hoodie.datasource.write.reconcile.schema",
        "hoodie.write.set.null.for.missing.columns=true fills columns that a batch lacks; new ones "
        "are added anyway",
    ),
    **_only(
        "false", "hoodie.write.ignore.failed", "a write that fails stores nothing; use 'false'"
    ),
    **_only("false", "hoodie.datasource.write.streaming.ignore.failed.batch write.ignore.failed"),
    # Which file groups a write touches.
    **_never("hoodie.index.class", "say hoodie.index.type"),
    **_only("simple", "hoodie.index.bucket.engine"),
    **_only(RULE_TYPE, "hoodie.bucket.index.partition.rule.type"),
    **_never(
        "hoodie.datasource.overwrite.mode",
        "say hoodie.datasource.write.operation=insert_overwrite (dynamic) or "
        "insert_overwrite_table",
    ),
    **_only("", "hoodie.static.overwrite.partition.paths"),
    **_never("hoodie.compaction.partition.path.regex"),
    **_only("static", "write.partition.overwrite.mode"),
    **_only("false", "write.insert.cluster"),
    # Commits, other writers and catalogs.
    **_never("hoodie.write.lock.filesystem.path"),
    **_only("none rollback_failed_writes", "hoodie.prewrite.cleaner.policy"),
    **_only(
        "",
        """
        hoodie.precommit.validators hoodie.prewrite.validators
        hoodie.client.init.callback.classes hoodie.write.rolling.metadata.keys
        """,
    ),
    **_only(
        "false",
        """
        hoodie.metaserver.enabled hoodie.table.service.manager.enabled
        hoodie.datasource.hive_sync.use_jdbc hive_sync.use_jdbc
        """,
    ),
    **_only(
        "num_commits",
        "hoodie.clean.trigger.strategy hoodie.cleaner.trigger.strategy",
        "NUM_COMMITS is the only one; hoodie.clean.trigger.max.commits says after how many commits",
    ),
}
"""Of a write."""

READ_RESTRICTED: Final[Mapping[str, Restriction]] = {
    **_never("hoodie.datasource.read.paths read.start-commit read.end-commit"),
    **_only("payload_combine", "hoodie.datasource.merge.type"),
    **_only("descriptor", "hoodie.read.blob.inline.mode"),
    **_only(
        "false",
        """
        hoodie.datasource.read.extract.partition.values.from.path
        hoodie.datasource.read.partition.value.extractor.enabled
        hoodie.datasource.read.create.filesystem.relation
        hoodie.datasource.read.table.valued.function.timeline.relation
        hoodie.datasource.read.table.valued.function.timeline.relation.archived
        read.streaming.enabled
        """,
    ),
    **_only("", "hoodie.datasource.read.table.valued.function.filesystem.relation.subpath"),
    **_only(
        "",
        "hoodie.datasource.read.incr.filters",
        "filter the rows that the query returns; leave it out",
    ),
    **_only("true", "read.utc-timezone"),
    # Names of Delta and Iceberg, which would be passed over as if they were Spark's own.
    **_never("snapshot-id as-of-timestamp", "as.of.instant says the moment of a time travel query"),
    **_never(
        "readChangeFeed readChangeData start-snapshot-id end-snapshot-id",
        "hoodie.datasource.query.type=incremental asks for what commits wrote since "
        "hoodie.datasource.read.begin.instanttime, and with "
        "hoodie.datasource.query.incremental.format=cdc for their changes",
    ),
    **_never(
        "startingVersion startingTimestamp stream-from-timestamp",
        "hoodie.datasource.streaming.startOffset says where a stream begins, and "
        "hoodie.datasource.read.begin.instanttime where an incremental query does",
    ),
}
"""Of a read."""

BOTH_RESTRICTED: Final[Mapping[str, Restriction]] = {
    # The table says whether its columns are found by number.
    **_only("true false", "hoodie.schema.on.read.enable"),
}
"""Of either."""

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

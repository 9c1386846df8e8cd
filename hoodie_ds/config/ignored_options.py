"""Known options without effect on what is stored here: accepted, and named in a warning.

Invariant: an option is listed only if leaving it out of account cannot lose rows, change their
values or weaken a guarantee. Names are those of the Hudi 1.2 configuration reference, and those
that its 0.x releases had.
"""

from __future__ import annotations

from typing import Final

_NO_SERVICE: Final = "no such table service runs here"
_NO_VALIDATOR: Final = "no validators run here"
_CLEAN: Final = "tunes how Hudi's engine cleans; a clean here does without"
_ARCHIVE: Final = "tunes how Hudi's engine archives; archiving here does without"
_CLUSTER: Final = "tunes how Hudi's engine clusters; HoodieTable.cluster does without"
_INLINE_CLUSTER: Final = "no write clusters by itself here; call HoodieTable.cluster"
_COMPACT: Final = "tunes how Hudi's engine compacts; a compaction here does without"
_METADATA_TABLE: Final = (
    "tunes how Hudi's engine makes a metadata table, or asks for a part not made here"
)
_SYNC: Final = "tunes Hudi's own sync; the sync here does without"
_NO_SYNC: Final = "the table is synced to no catalog but a Hive metastore and AWS Glue"
_JVM: Final = "tunes Hudi's engine on the JVM"

# A key that ends with a dot stands for all that begin with it.
_KEYS_BY_REASON: Final = {
    _JVM: """
        hoodie.write.meta.key.prefixes hoodie.auto.adjust.lock.configs
        hoodie.rollback.using.markers hoodie.combine.before.delete hoodie.writestatus.class
        hoodie.write.status.storage.level hoodie.write.tagged.record.storage.level
        hoodie.fail.job.on.duplicate.data.file.detection hoodie.merge.data.validation.enabled
        hoodie.record.size.estimator.class hoodie.record.size.estimator.average.metadata.size
        hoodie.allow.multi.write.on.same.instant hoodie.skip.default.partition.validation
        hoodie.refresh.timeline.server.based.on.latest.commit
        hoodie.bulkinsert.user.defined.partitioner.class hoodie.bulkinsert.sort.suffix.record_key
        hoodie.schema.cache.enable hoodie.avro.schema.external.transformation
        hoodie.storage.layout.type hoodie.storage.layout.partitioner.class
        hoodie.sql.insert.mode hoodie.sql.bulk.insert.enable
        hoodie.optimized.log.blocks.scan.enable hoodie.compaction.lazy.block.read
        hoodie.compaction.reverse.log.read
        hoodie.datasource.write.row.writer.enable
        hoodie.upsert.shuffle.parallelism hoodie.insert.shuffle.parallelism
        hoodie.bulkinsert.shuffle.parallelism hoodie.delete.shuffle.parallelism
        hoodie.embed.timeline.server hoodie.write.markers.type hoodie.markers.delete.parallelism
        hoodie.rollback.parallelism hoodie.finalize.write.parallelism
        hoodie.write.auto.upgrade hoodie.auto.commit hoodie.avro.schema.validate
        hoodie.write.complex.keygen.validation.enable
        hoodie.datasource.write.streaming.retry.count
        hoodie.datasource.write.streaming.retry.interval.ms
        hoodie.spark.sql.insert.into.operation
        write.tasks write.bucket_assign.tasks write.index_bootstrap.tasks write.merge.max_memory
        write.sort.memory write.buffer.type write.buffer.size write.buffer.disruptor.ring.size
        write.buffer.disruptor.wait.strategy write.buffer.memory.type
        write.memory.segment.page.size write.rate.limit write.retry.times
        write.retry.interval.ms write.commit.ack.timeout write.client.id write.fail.fast
        write.bulk_insert.shuffle_input write.bulk_insert.sort_input
        write.bulk_insert.sort_input.by_record_key write.extra.metadata.enabled
        hoodie.avro.schema.externalTransformation hoodie.avro.write.support.class
        hoodie.parquet.flink.rowdata.write.support.class
        hoodie.parquet.spark.row.write.support.class hoodie.parquet.write.config.injector.class
        hoodie.block.writes.on.speculative.execution hoodie.fileid.prefix.provider.class
        hoodie.bulkinsert.overwrite.operation.type hoodie.bulkinsert.schema.ddl
        hoodie.cdc.file.group.iterator.memory.spill.bytes hoodie.fs.atomic_creation.support
        hoodie.write.merge.handle.class hoodie.write.merge.handle.fallback
        hoodie.write.concat.handle.class hoodie.compact.merge.handle.class
        hoodie.io.factory.class hoodie.storage.class hoodie.file.listing.parallelism
        hoodie.filesystem.remote.backup.view.enable hoodie.write.application.id
        hoodie.optimistic.consistency.guard.sleep_time_ms hoodie.sensitive.config.keys
        hoodie.release.resource.on.completion.enable hoodie.rollback.avoid.duplicate.plan
        hoodie.rollback.instant.backup.enabled hoodie.rollback.instant.backup.dir
        hoodie.metricscompaction.log.blocks.on hoodie.write.can.ignore.post.commit.failures
        hoodie.post.commit.failures.ignored
        hoodie.write.rolling.metadata.timeline.lookback.commits
        hoodie.memory. hoodie.common. hoodie.filesystem.view.
        hoodie.filesystem.operation.retry. hoodie.lance. hoodie.embed.timeline.server.
        hoodie.markers. hoodie.consistency.check. hoodie.write.executor.
        hoodie.write.buffer. hoodie.orc. hoodie.hfile. hoodie.index.hbase.
        hoodie.record.index. hoodie.bootstrap.
    """,
    "instant times are claimed on the storage, so that clocks may differ": """
        hoodie.time.generator.type hoodie.time.generator.max_expected_clock_skew_ms
    """,
    "positions in log blocks are used if there are any": "hoodie.merge.use.record.positions",
    "rows of one key within a batch are always combined by an upsert": "write.precombine",
    "event times are not kept in commit metadata here": """
        hoodie.payload.event.time.field hoodie.write.track.event.time.watermark
    """,
    "file sizes follow the number of buckets or the batch": """
        hoodie.parquet.page.size hoodie.parquet.writelegacyformat.enabled
        hoodie.parquet.field_id.write.enabled
        hoodie.parquet.compression.ratio hoodie.parquet.dictionary.enabled
        hoodie.copyonwrite.insert.split.size hoodie.copyonwrite.insert.auto.split
        hoodie.logfile.to.parquet.compression.ratio write.parquet.page.size
    """,
    "tunes an index on the JVM; the index here is exact by itself": """
        hoodie.bloom.index.prune.by.ranges
        hoodie.bloom.index.use.metadata hoodie.bloom.index.parallelism
        hoodie.bloom.index.use.caching hoodie.parquet.bloom.filter.enabled
        hoodie.bloom.index.bucketized.checking hoodie.bloom.index.keys.per.bucket
        hoodie.bloom.index.input.storage.level hoodie.bloom.index.use.treebased.filter
        hoodie.simple.index.parallelism hoodie.simple.index.use.caching
        hoodie.simple.index.input.storage.level hoodie.global.simple.index.parallelism
        hoodie.bucket.index.max.num.buckets hoodie.bucket.index.min.num.buckets
        hoodie.bucket.index.merge.threshold hoodie.bucket.index.split.threshold
        index.bootstrap.enabled index.state.ttl index.partition.regex
        hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism
        hoodie.bloom.index.fileid.key.sorting.enable hoodie.global.index.reconcile.parallelism
        hoodie.bucket.index.query.pruning hoodie.bucket.index.remote.partitioner.enable
        index.rli.cache.size index.rli.lookup.minibatch.size index.rli.write.buffer.size
    """,
    _NO_VALIDATOR: """
        hoodie.precommit.validators.failure.policy
        hoodie.precommit.validators.streaming.offset.tolerance.percentage
        hoodie.precommit.validators.equality.sql.queries
        hoodie.precommit.validators.inequality.sql.queries
        hoodie.precommit.validators.single.value.sql.queries
    """,
    "a table service that fails is logged here, and never fails a write": """
        hoodie.fail.on.timeline.archiving
        hoodie.fail.writes.on.inline.table.service.exception
    """,
    "table services here look at the whole table": "hoodie.table.services.incremental.enabled",
    "the table itself says what version it has": """
        hoodie.datasource.read.incr.table.version hoodie.datasource.read.streaming.table.version
    """,
    "tunes statements of Hudi's SQL": """
        hoodie.spark.sql.merge.into.partial.updates hoodie.spark.sql.optimized.writes.enable
    """,
    _SYNC: """
        hoodie.datasource.partition_extractor_class hoodie.datasource.hive_sync.
        hoodie.datasource.meta.sync. hoodie.datasource.meta_sync. hoodie.meta.sync.
        hoodie.meta_sync. hoodie.aws. hive_sync.
    """,
    _COMPACT: """
        hoodie.compaction.daybased.target.partitions hoodie.compaction.preserve.commit.metadata
        hoodie.compaction.plan.generator
        compaction.max_memory compaction.timeout.seconds compaction.tasks
    """,
    _INLINE_CLUSTER: """
        hoodie.clustering.inline hoodie.clustering.inline.max.commits
        hoodie.clustering.schedule.inline hoodie.clustering.async.enabled
        hoodie.clustering.async.max.commits
        hoodie.datasource.clustering.inline.enable hoodie.datasource.clustering.async.enable
        clustering.schedule.enabled clustering.async.enabled clustering.delta_commits
    """,
    _CLUSTER: """
        clustering.tasks hoodie.clustering. hoodie.layout.optimize.
    """,
    _CLEAN: """
        hoodie.write.empty.clean.interval.hours hoodie.clean. hoodie.cleaner.
    """,
    _ARCHIVE: """
        hoodie.timeline.compaction.target.file.max.bytes
        hoodie.timeline.manifest.retained.versions
        hoodie.archive.
    """,
    _METADATA_TABLE: """
        hoodie.index.name hoodie.expression.index.function hoodie.expression.index.type
        hoodie.expression.index.range.metadata.storage.level
        hoodie.datasource.write.secondarykey.column
        hoodie.metadata. hoodie.metadata.bloom.filter.enable
    """,
    "the lock is asked for again until the time to wait is over": """
        hoodie.write.lock.num_retries hoodie.write.lock.wait_time_ms_between_retry
        hoodie.write.lock.max_wait_time_ms_between_retry
        hoodie.write.lock.client.num_retries hoodie.write.lock.client.wait_time_ms_between_retry
    """,
    "a commit that outlives its lock is still safe": """
        hoodie.write.lock.heartbeat_interval_ms
    """,
    "file groups are compared, and keys where an index looks them up": """
        hoodie.write.lock.conflict.resolution.strategy
    """,
    "tunes how the JVM plans a read; the rows are the same": """
        hoodie.enable.data.skipping hoodie.file.index.enable
        hoodie.file.index.cache.spillable.mem hoodie.file.index.cache.use.spillable.map
        hoodie.file.group.reader.enabled hoodie.spark.polaris.catalog.class
        hoodie.datasource.read.file.index.list.partitions.from.catalog
        hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled
        hoodie.datasource.read.file.index.optimize.listing.using.path.filter
        hoodie.datasource.read.file.index.listing.mode read.data.skipping.enabled
        read.splits.limit read.streaming.check-interval
    """,
    "an incremental query finds no news in compactions and clusterings anyway": """
        hoodie.datasource.read.incr.skip_compact hoodie.datasource.read.incr.skip_cluster
        hoodie.read.timeline.skip.instants.clustering
    """,
    "tunes a streaming read, which another option asks for": """
        read.streaming.skip_compaction read.streaming.skip_clustering
        read.streaming.skip_insertoverwrite
    """,
    _NO_SYNC: "hoodie.gcp.bigquery.sync.",
    _NO_SERVICE: "hoodie.log.compaction. hoodie.partition.ttl.",
    "_hoodie_ds_metrics in each commit, and CommitListener, report instead": "hoodie.metrics.",
    "a CommitListener reports commits instead": "hoodie.write.commit.callback.",
    "no metaserver is asked here": "hoodie.metaserver.",
    "no service manager is asked here": "hoodie.table.service.manager.",
    "no error table is written here": "hoodie.errortable.",
    "conflicts are looked for at the commit": """
        hoodie.write.concurrency.early.conflict. hoodie.write.concurrency.async.conflict.
        hoodie.write.concurrency.schema.conflict.
    """,
    "of a lock provider that is not supported here": """
        hoodie.write.lock.zookeeper. hoodie.write.lock.hivemetastore.
        hoodie.write.lock.dynamodb.
    """,
    "hoodie-streamer takes source and schema as --source-... options": """
        hoodie.deltastreamer. hoodie.streamer.
    """,
}

_REASONS: Final = {key: reason for reason, keys in _KEYS_BY_REASON.items() for key in keys.split()}
_REASONS_LOWER: Final = {key.lower(): reason for key, reason in _REASONS.items()}

IGNORED: Final = {key: reason for key, reason in _REASONS.items() if not key.endswith(".")}
"""Key, as Hudi spells it, to the reason why it may be ignored."""

IGNORED_PREFIXES: Final = {key: reason for key, reason in _REASONS.items() if key.endswith(".")}
"""Families of keys that belong to a part of Hudi that has no counterpart here."""


def reason_to_warn(lower: str, text: str) -> str | None:
    """Return why an option, its key in lower case, has no effect here; None if it asks for none.

    What is switched off would not do anything elsewhere either.
    """
    if text.strip().lower() in ("", "false"):
        return None
    if lower in _REASONS_LOWER:
        return _REASONS_LOWER[lower]
    return next((why for prefix, why in IGNORED_PREFIXES.items() if lower.startswith(prefix)), None)

"""Known options that change nothing that is stored here: accepted and ignored.

Invariant: an option is listed only if leaving it out of account cannot lose rows, change their
values or weaken a guarantee. Names are those of the Hudi 1.2 configuration reference.
"""

from __future__ import annotations

from typing import Final

_KEYS_BY_REASON: Final = {
    "tunes Hudi's engine on the JVM": """
        hoodie.datasource.write.row.writer.enable
        hoodie.upsert.shuffle.parallelism hoodie.insert.shuffle.parallelism
        hoodie.bulkinsert.shuffle.parallelism hoodie.delete.shuffle.parallelism
        hoodie.embed.timeline.server hoodie.write.markers.type hoodie.markers.delete.parallelism
        hoodie.rollback.parallelism hoodie.finalize.write.parallelism
        hoodie.write.auto.upgrade hoodie.auto.commit hoodie.avro.schema.validate
        hoodie.write.complex.keygen.validation.enable
        hoodie.datasource.write.streaming.retry.count
        hoodie.datasource.write.streaming.retry.interval.ms
        hoodie.datasource.write.streaming.disable.compaction
        hoodie.spark.sql.insert.into.operation
        write.tasks write.bucket_assign.tasks write.index_bootstrap.tasks write.merge.max_memory
        write.sort.memory write.buffer.type write.buffer.size write.buffer.disruptor.ring.size
        write.buffer.disruptor.wait.strategy write.buffer.memory.type
        write.memory.segment.page.size write.rate.limit write.retry.times
        write.retry.interval.ms write.commit.ack.timeout write.client.id write.fail.fast
        write.bulk_insert.shuffle_input write.bulk_insert.sort_input
        write.bulk_insert.sort_input.by_record_key write.extra.metadata.enabled
    """,
    "rows of one key within a batch are always combined by an upsert": "write.precombine",
    "file sizes follow the number of buckets or the batch": """
        hoodie.parquet.page.size
        hoodie.parquet.compression.ratio hoodie.parquet.dictionary.enabled
        hoodie.copyonwrite.insert.split.size hoodie.copyonwrite.insert.auto.split
        hoodie.logfile.to.parquet.compression.ratio write.parquet.page.size
    """,
    "tunes an index on the JVM; the index here is exact by itself": """
        hoodie.bloom.index.prune.by.ranges
        hoodie.bloom.index.use.metadata hoodie.bloom.index.parallelism
        hoodie.bloom.index.use.caching hoodie.parquet.bloom.filter.enabled
        index.bootstrap.enabled index.state.ttl index.partition.regex
        index.rli.cache.size index.rli.lookup.minibatch.size index.rli.write.buffer.size
    """,
    "tunes a table service; whether the service runs is another option": """
        hoodie.clean.policy hoodie.cleaner.policy hoodie.clean.commits.retained
        hoodie.cleaner.commits.retained hoodie.clean.hours.retained hoodie.cleaner.hours.retained
        hoodie.clean.fileversions.retained hoodie.cleaner.fileversions.retained
        hoodie.clean.max.commits.to.clean hoodie.cleaner.parallelism
        hoodie.keep.min.commits hoodie.keep.max.commits hoodie.commits.archival.batch
        hoodie.compact.inline.max.delta.commits hoodie.compact.inline.max.delta.seconds
        hoodie.compact.inline.trigger.strategy hoodie.compaction.strategy
        hoodie.compaction.target.io hoodie.log.compaction.blocks.threshold
        hoodie.clustering.inline.max.commits hoodie.clustering.async.max.commits
        hoodie.clustering.plan.strategy.target.file.max.bytes
        hoodie.clustering.plan.strategy.small.file.limit
        hoodie.clustering.plan.strategy.max.num.groups
        hoodie.clustering.plan.strategy.sort.columns
        hoodie.table.services.incremental.enabled
        hoodie.precommit.validators.failure.policy
        hoodie.precommit.validators.streaming.offset.tolerance.percentage
        compaction.trigger.strategy compaction.delta_commits compaction.delta_seconds
        compaction.max_memory compaction.target_io compaction.timeout.seconds compaction.tasks
        clean.policy clean.retain_commits clean.retain_hours clean.retain_file_versions
        archive.min_commits archive.max_commits
        clustering.delta_commits clustering.tasks
        clustering.plan.strategy.target.file.max.bytes
        clustering.plan.strategy.small.file.limit clustering.plan.strategy.max.num.groups
    """,
    "no metadata table is written; hoodie.metadata.enable decides about an existing one": """
        hoodie.metadata.index.column.stats.enable hoodie.metadata.index.bloom.filter.enable
        hoodie.metadata.index.partition.stats.enable
        hoodie.metadata.record.index.enable hoodie.metadata.record.level.index.enable
        hoodie.metadata.global.record.level.index.enable
        hoodie.metadata.compact.max.delta.commits metadata.compaction.delta_commits
    """,
    "the lock is asked for again until the time to wait is over": """
        hoodie.write.lock.num_retries hoodie.write.lock.wait_time_ms_between_retry
        hoodie.write.lock.client.num_retries hoodie.write.lock.client.wait_time_ms_between_retry
    """,
    "a commit that outlives its lock is still safe": """
        hoodie.write.lock.storage.renew.interval.secs
    """,
    "file groups are compared, and keys where an index looks them up": """
        hoodie.write.lock.conflict.resolution.strategy
    """,
    "tunes how the JVM plans a read; the rows are the same": """
        hoodie.enable.data.skipping hoodie.file.index.enable
        hoodie.datasource.read.file.index.listing.mode read.data.skipping.enabled
        read.splits.limit read.commits.limit read.streaming.check-interval
    """,
    "tunes an incremental or streaming read, which another option asks for": """
        hoodie.datasource.read.incr.path.glob hoodie.datasource.read.incr.filters
        hoodie.datasource.read.incr.fallback.fulltablescan.enable
        hoodie.datasource.read.incr.skip_compact hoodie.datasource.read.incr.skip_cluster
        hoodie.datasource.read.schema.use.end.instanttime
        hoodie.read.timeline.holes.resolution.policy
        read.streaming.skip_compaction read.streaming.skip_clustering
        read.streaming.skip_insertoverwrite
    """,
    "tunes a catalog sync, which another option asks for": """
        hive_sync.mode hive_sync.metastore.uris hive_sync.table hive_sync.db
    """,
    "tunes change data capture, which another option asks for": """
        cdc.supplemental.logging.mode hoodie.table.cdc.supplemental.logging.mode
    """,
}

IGNORED: Final = {key: reason for reason, keys in _KEYS_BY_REASON.items() for key in keys.split()}
"""Key, as Hudi spells it, to the reason why it may be ignored."""

IGNORED_PREFIXES: Final = {
    "hoodie.datasource.hive_sync.": "tunes a catalog sync, which another option asks for",
    "hoodie.meta.sync.": "tunes a catalog sync, which another option asks for",
    "hoodie.metrics.": "reports metrics of the JVM",
    "hoodie.memory.": "tunes memory of the JVM",
    "hoodie.filesystem.view.": "tunes a cache on the JVM",
    "hoodie.write.lock.zookeeper.": "locks belong to several writers",
    "hoodie.write.lock.hivemetastore.": "locks belong to several writers",
    "hoodie.write.lock.dynamodb.": "locks belong to several writers",
}
"""Families of keys that belong to a part of Hudi that has no counterpart here."""

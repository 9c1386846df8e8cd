"""Golden tables of all operations and table services, done and pending."""

from __future__ import annotations

from collections.abc import Mapping

from tests.golden.make.recipe import (
    ARCHIVE,
    BUCKET,
    CLEAN,
    CLUSTER,
    COMPACT,
    COW,
    MOR,
    PARQUET_BLOCKS,
    SCHEDULE_CLUSTERING,
    SCHEDULE_COMPACTION,
    VERSION,
    WRITE,
    Recipe,
    dying,
    golden,
    missing,
    rows,
)

CONTROL = {
    "hoodie.metadata.enable": "false",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.embed.timeline.server": "false",
}


def given(table: Recipe, **more: str) -> dict[str, str]:
    """The argument of a procedure that holds a writer's options; ``__`` stands for a dot."""
    named = {key.replace("__", "."): value for key, value in more.items()}
    named |= {**CONTROL, VERSION: table.options[VERSION]}
    return {"options": ",".join(f"{key}={value}" for key, value in named.items())}


@golden("cow_history", COW, versions="69")
def cow_history(table: Recipe) -> None:
    """Every operation of a copy-on-write table, with all queries."""
    table.insert(range(6), 1)
    table.upsert([1, 3, 7], 2)
    table.delete([5], 3)
    table.upsert([1, 5], 1, ts=5)
    table.write(rows([1, 9], 5), "insert_overwrite")
    table.write(rows([1], 6), "delete_partition", {f"{WRITE}partitions.to.delete": "city=nyc"})
    table.upsert([2, 9], 7)
    table.write(rows([3, 4], 8), "insert_overwrite_table")
    table.upsert([4, 11], 9)
    table.ask_history()
    table.store()


@golden("mor_history", MOR, BUCKET, PARQUET_BLOCKS, versions="69", partition="")
def mor_history(table: Recipe) -> None:
    """Log files, a compaction in the middle, an overwrite, with all queries."""
    table.upsert(range(8), 1)
    table.upsert([1, 2, 9], 2)
    table.delete([3], 3)
    table.upsert([1, 4], 1, COMPACT, ts=5)
    table.upsert([5, 10], 5)
    table.write(rows([1, 6], 6), "insert_overwrite_table")
    table.upsert([6, 12], 7)
    table.delete([1], 8)
    table.ask_history()
    table.store()


@golden("mor_clustered", MOR, versions="8")
def mor_clustered(table: Recipe) -> None:
    """Delta commits, a compaction and a clustering, with all queries."""
    table.upsert([1, 3, 5, 7], 1)
    table.upsert([1, 3], 2)
    table.upsert([5], 3, COMPACT)
    table.upsert([7], 4, {**CLUSTER, **SMALL_FILES})
    table.upsert([3, 9], 5)
    table.ask_history()
    table.store()


@golden("cow_failed", COW, versions="69")
def cow_failed(table: Recipe) -> None:
    """A writer died before its commit: new files, markers and an open instant."""
    table.upsert(range(4), 1)
    table.fail([1, 2, 5], 2)
    table.ask_snapshots()
    table.store()


@golden("mor_failed", MOR, BUCKET, versions="69", partition="")
def mor_failed(table: Recipe) -> None:
    """A writer died after it appended to log files, and the next one rolled it back."""
    table.upsert(range(4), 1)
    table.upsert([1, 2], 2)
    table.fail([1, 2, 5], 3)
    table.ask_snapshots()
    table.store("open")
    table.upsert([2, 6], 4)
    table.ask_snapshots()
    table.store("rolled_back")


@golden("mor_compaction", MOR, versions="69", partition="")
def mor_compaction(table: Recipe) -> None:
    """A compaction requested, with delta commits after it; inflight, its writer dead; done."""
    table.upsert(range(6), 1)
    table.upsert([1, 2], 2)
    table.upsert([3], 3, SCHEDULE_COMPACTION)
    table.upsert([1, 4], 4)
    table.delete([2], 5)
    table.ask_snapshots()
    table.store("requested")
    run = {"op": "run", **given(table)}
    with missing(sorted(table.path.glob("*.parquet"))), dying():
        table.call("run_compaction", **run)
    table.ask_snapshots()
    table.store("inflight")
    table.call("run_compaction", **run)
    table.ask_snapshots()
    table.store("done")


SMALL_FILES = {
    "hoodie.clustering.plan.strategy.sort.columns": "name,qty",
    "hoodie.clustering.plan.strategy.small.file.limit": "10000000",
}


@golden("cow_clustering", COW, {"hoodie.parquet.small.file.limit": "0"}, versions="69")
def cow_clustering(table: Recipe) -> None:
    """A clustering requested, with an insert after it; then done, and the table updated."""
    table.insert([1, 3, 5], 1)
    table.insert([7, 9], 2)
    table.insert([11], 3, {**SMALL_FILES, **SCHEDULE_CLUSTERING})
    table.insert([13], 4)
    table.ask_snapshots()
    table.store("requested")
    table.call("run_clustering", op="execute", **given(table))
    table.upsert([1, 9], 5)
    table.ask_snapshots()
    table.store("done")


@golden("mor_clustering", MOR, {"hoodie.parquet.small.file.limit": "0"})
def mor_clustering(table: Recipe) -> None:
    """A clustering of slices with several log files, requested; then done."""
    table.insert([1, 3, 2], 1)
    table.insert([5, 7, 4], 2)
    table.upsert([1, 5, 2], 3)
    table.delete([3], 4)
    table.upsert([1, 4], 5, {**SMALL_FILES, **SCHEDULE_CLUSTERING})
    table.ask_snapshots()
    table.store("requested")
    table.call("run_clustering", op="execute", **given(table))
    table.ask_snapshots()
    table.store("done")


@golden("cow_cleaned", COW)
def cow_cleaned(table: Recipe) -> None:
    """Old base files and a replaced file group are gone, and with them old snapshots."""
    table.upsert([1, 2, 3], 1)
    table.upsert([1], 2)
    table.write(rows([2, 4], 3), "insert_overwrite")
    for revision in (4, 5, 6):
        table.upsert([1, 3], revision, CLEAN)
    table.ask_history()
    table.store()


@golden("cow_archived", COW, ARCHIVE, versions="6", partition="")
def cow_archived(table: Recipe) -> None:
    """Most commits are in the archive, cleans, a replace commit and deletes among them."""
    archive(table)


@golden("cow_archived", COW, ARCHIVE, {"hoodie.timeline.compaction.batch.size": "2"}, versions="9",
        partition="")  # fmt: skip
def cow_archived_in_layers(table: Recipe) -> None:
    """Most commits are in the archive, whose files were merged into higher levels."""
    archive(table)


def archive(table: Recipe) -> None:
    """Write until most commits are archived."""
    table.upsert(range(6), 1)
    for revision in range(2, 12):
        if revision == 4:
            table.delete([0, 4], revision)
        elif revision == 6:
            table.write(rows([1, 2, 3, 4, 5], revision), "insert_overwrite")
        else:
            table.upsert([revision % 4, 5 + revision], revision)
    table.ask_history()
    table.store()


@golden("cow_archived_beyond_savepoint", COW, ARCHIVE,
        {"hoodie.archive.beyond.savepoint": "true"}, partition="")  # fmt: skip
def cow_archived_beyond_savepoint(table: Recipe) -> None:
    """A savepoint keeps its commit and files; commits before and after it are archived."""
    table.upsert(range(4), 1)
    table.upsert([1], 2)
    table.call("create_savepoint", commit_time=table.commits()[1], user="golden")
    for revision in range(3, 10):
        table.upsert([revision % 4], revision)
    table.ask_snapshots()
    table.ask({"as.of.instant": table.commits()[0]})
    table.store()


@golden("mor_restored", MOR, versions="69", partition="")
def mor_restored(table: Recipe) -> None:
    """Restored to a savepoint, before which a compaction was undone; and then written to."""
    table.upsert(range(6), 1)
    table.upsert([1, 2], 2)
    savepoint = table.commits()[-1]
    table.call("create_savepoint", commit_time=savepoint, user="golden")
    table.upsert([3, 7], 3, COMPACT)
    table.delete([4], 4)
    table.call("rollback_to_savepoint", instant_time=savepoint)
    table.ask_snapshots()
    table.store()
    table.upsert([5, 8], 5)
    table.ask_snapshots()
    table.store("and_on")


def undo(table: Recipe, compact: Mapping[str, str]) -> None:
    """Write on after a savepoint, go back one write, and then to the savepoint."""
    table.upsert(range(6), 1)
    table.upsert([1, 2], 2)
    savepoint = table.commits()[-1]
    table.call("create_savepoint", commit_time=savepoint, user="golden")
    table.upsert([3, 7], 3)
    table.upsert([1, 3], 4, compact)
    table.delete([4], 5)
    table.upsert([1, 9], 6)
    table.ask_snapshots()
    table.store("before")
    table.roll_back(table.commits()[-1])
    table.ask_snapshots()
    table.store("by_a_write")
    table.call("rollback_to_savepoint", instant_time=savepoint)
    table.ask_snapshots()
    table.store("to_a_savepoint")


@golden("cow_undone", COW)
def cow_undone(table: Recipe) -> None:
    """A savepoint and later writes; the last one rolled back; restored to the savepoint."""
    undo(table, {})


@golden("mor_undone", MOR, BUCKET, versions="69")
def mor_undone(table: Recipe) -> None:
    """The same with log files and a compaction, in buckets."""
    undo(table, COMPACT)


@golden("upgraded", MOR, ARCHIVE, versions="9", partition="")
def upgraded(table: Recipe) -> None:
    """A table of version 6 with an archive and log files that Hudi upgraded, then written to."""
    table.options[VERSION] = "6"
    for revision in range(1, 7):
        table.upsert([revision, revision + 1], revision, COMPACT if revision == 3 else None)
    table.options[VERSION] = "9"
    table.call("upgrade_table", to_version="NINE")
    table.upsert(
        [1, 9], 9, {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    )
    table.ask_history()
    table.store()


_INDEX = "hoodie.metadata.index."
METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "2",
    f"{_INDEX}column.stats.enable": "true",
    f"{_INDEX}column.stats.column.list": "name,qty,ts",
    f"{_INDEX}column.stats.file.group.count": "1",
    f"{_INDEX}partition.stats.enable": "false",
    f"{_INDEX}partition.stats.file.group.count": "1",
    "hoodie.metadata.record.index.enable": "false",
    "hoodie.metadata.global.record.level.index.enable": "false",
}
RECORD_INDEX = {
    f"{_INDEX}partition.stats.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "2",
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
}


def write_with_metadata(table: Recipe) -> None:
    """Write until the metadata table is compacted; ask through it."""
    table.upsert(range(4), 1)
    table.upsert([1, 5], 2)
    table.delete([3], 3)
    table.ask_snapshots()
    table.ask({"hoodie.metadata.enable": "true"})
    table.store()


@golden("cow_metadata", COW, METADATA, versions="6")
def cow_metadata(table: Recipe) -> None:
    """A metadata table with file listings and column statistics, compacted."""
    write_with_metadata(table)


@golden("mor_metadata", MOR, METADATA, RECORD_INDEX, versions="9")
def mor_metadata(table: Recipe) -> None:
    """A metadata table with a record index and statistics of columns and partitions, compacted."""
    write_with_metadata(table)


CDC = {"hoodie.table.cdc.enabled": "true"}
LOGGING = "hoodie.table.cdc.supplemental.logging.mode"


def change(table: Recipe) -> None:
    """Write every kind of change; ask for the changes of each commit."""
    table.insert([1, 2, 3], 1)
    table.upsert([1, 5], 2)
    table.delete([2], 3)
    table.upsert([1], 1, ts=5)
    table.upsert([2, 3], 5)
    table.write(rows([1, 7], 6), "insert_overwrite_table")
    table.upsert([7], 7)
    table.ask_snapshots()
    table.ask_changes()
    table.store()


@golden("cow_cdc", COW, CDC, {LOGGING: "DATA_BEFORE_AFTER"}, versions="69", partition="")
def cow_cdc(table: Recipe) -> None:
    """Both images of a change are logged in CDC files; with the changes of each commit."""
    change(table)


@golden("mor_cdc", MOR, CDC, {LOGGING: "OP_KEY_ONLY"}, versions="69", partition="")
def mor_cdc(table: Recipe) -> None:
    """Only operation and key of a change are logged; with the changes of each commit."""
    change(table)


@golden("mor_cdc_compacted", MOR, CDC, BUCKET, {LOGGING: "DATA_BEFORE"}, versions="9", partition="")
def mor_cdc_compacted(table: Recipe) -> None:
    """What a change replaces is logged; log files, merged by a compaction that logs changes too."""
    table.upsert([1, 2, 3], 1)
    table.upsert([1, 5], 2)
    table.delete([2], 3)
    table.upsert([3], 4, COMPACT)
    table.upsert([3, 7], 5)
    table.ask_snapshots()
    table.ask_changes()
    table.store()

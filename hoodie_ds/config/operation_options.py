"""What a write does with its rows, and how its batches are known and committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from hoodie_ds.config.base_path import BASE_PATH
from hoodie_ds.config.enums import DuplicatePolicy, Operation, SortMode, TableType
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import (
    BOOLEAN,
    ONE_OR_MORE_NAMES,
    PARTITION_PATHS,
    POSITIVE_INT,
    TEXT,
    Option,
    choice,
    whole,
)
from hoodie_ds.errors import OptionError

if TYPE_CHECKING:
    from typing import Self

_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class OperationOptions(OptionGroup):
    """What a write does, and to which table."""

    base_path: Option[str] = Option(
        "path", BASE_PATH, "Base path of the table.", needed="give the table's folder"
    )
    table_name: Option[str | None] = Option(
        "hoodie.table.name",
        TEXT,
        "Name of the table; needed when the write creates it.",
        aliases=("hoodie.datasource.write.table.name",),
    )
    database_name: Option[str | None] = Option(
        "hoodie.database.name", TEXT, "Database of the table."
    )
    table_type: Option[TableType | None] = Option(
        "hoodie.datasource.write.table.type",
        choice(TableType),
        "How updates are stored; fixed at creation. COPY_ON_WRITE for a new table.",
        aliases=("hoodie.datasource.write.storage.type", "hoodie.table.type", "table.type"),
    )
    operation: Option[Operation | None] = Option(
        "hoodie.datasource.write.operation",
        choice(Operation),
        "What to do with the rows; upsert with record key fields, insert without.",
        aliases=("write.operation",),
    )
    partitions_to_delete: Option[tuple[str, ...] | None] = Option(
        "hoodie.datasource.write.partitions.to.delete",
        PARTITION_PATHS,
        "Partition paths that delete_partition removes; * stands for any string. Without this "
        "option, those of the rows, which also works for a path with a comma, a star or an outer "
        "blank.",
    )
    exact_partitions: bool = False
    """Whether ``*`` in `partitions_to_delete` stands for itself rather than for any string."""
    combine_before_insert: Option[bool] = Option(
        "hoodie.combine.before.insert",
        BOOLEAN,
        "Combine rows of one key in a batch for the inserting operations too.",
        False,
    )
    drop_duplicates: ClassVar[Option[bool | None]] = Option(
        "hoodie.datasource.write.insert.drop.duplicates",
        BOOLEAN,
        "Leave out inserted rows whose key is stored, as hoodie.datasource.insert.dup.policy=drop "
        "does.",
    )
    duplicate_policy: Option[DuplicatePolicy] = Option(
        "hoodie.datasource.insert.dup.policy",
        choice(DuplicatePolicy),
        "What insert does with rows whose key is stored: none (add them), drop or fail.",
        DuplicatePolicy.NONE,
    )
    sort_mode: Option[SortMode] = Option(
        "hoodie.bulkinsert.sort.mode",
        choice(SortMode),
        "How shuffle_by_file_group sorts rows for a table without record keys: all, within each "
        "task, or not.",
        SortMode.NONE,
    )
    sort_columns: Option[tuple[str, ...] | None] = Option(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        ONE_OR_MORE_NAMES,
        "Columns to sort by after those of the partition.",
    )
    tasks_per_partition: Option[int | None] = Option(
        "hoodie.py.append.tasks.per.partition",
        POSITIVE_INT,
        "Tasks over which shuffle_by_file_group scatters each partition of a table without record "
        "keys; by default rows stay where they are.",
    )
    allow_empty_commit: Option[bool] = Option(
        "hoodie.allow.empty.commit",
        BOOLEAN,
        "Whether a batch without rows is a commit too.",
        False,
    )
    batches_per_commit: Option[int] = Option(
        "hoodie.streaming.batches.per.commit",
        POSITIVE_INT,
        "Micro-batches of a stream that one instant takes; their rows appear together, with the "
        "last. More than 1 only where no other engine writes to the table.",
        1,
    )
    checkpoint_identifier: Option[str | None] = Option(
        "hoodie.datasource.write.streaming.checkpoint.identifier",
        TEXT,
        "Name of the query in foreach_batch, in addition to Spark's query id if known, or of "
        "the writer of numbered batch writes; the data source takes Spark's query id for a "
        "stream.",
        aliases=("hoodie.datasource.write.writer.identifier",),
    )
    batch_identifier: Option[int | None] = Option(
        "hoodie.datasource.write.batch.identifier",
        whole(f"a whole number from 0 to {_INT64_MAX}", most=_INT64_MAX),
        "Number of a batch write among those of its writer, greater than all before; the same "
        "number again, at any later time, changes nothing.",
    )
    accept_different: Option[bool] = Option(
        "hoodie.py.replay.accept.different",
        BOOLEAN,
        "Take a batch for committed that is repeated with other rows than before, or whose "
        "earlier rows are no longer known, instead of failing; for sources that do not return the "
        "same rows twice. A number that is known to have been passed over is refused all the same.",
        False,
    )
    accept_missed: Option[bool] = Option(
        "hoodie.py.stream.accept.missed.batches",
        BOOLEAN,
        "Let a stream continue in a table that has none of its batches, although it does not "
        "begin with batch 0, instead of failing: the rows of the earlier batches are not in the "
        "table.",
        False,
    )
    metadata_prefix: ClassVar[Option[str | None]] = Option(
        "hoodie.datasource.write.commitmeta.key.prefix",
        TEXT,
        "Options whose key has this prefix are stored in the commit's metadata; none by default.",
    )
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    """For the commit's metadata, under their full names as given."""

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        policy = given.get(cls.duplicate_policy)
        if given.get(cls.drop_duplicates):
            if policy not in (None, DuplicatePolicy.DROP):
                remedy = f"contradicts {cls.duplicate_policy.key}; give one"
                given.refuse_value(cls.drop_duplicates, remedy)
            policy = policy or DuplicatePolicy.DROP
        options = super().of(given)
        return options.with_values(
            duplicate_policy=policy or DuplicatePolicy.NONE,
            extra_metadata=_extra_metadata(given),
        )


def _extra_metadata(given: GivenOptions) -> dict[str, str]:
    option = OperationOptions.metadata_prefix
    prefix = given.get(option)
    if prefix is None:
        return {}
    # Commit metadata is public: a prefix that takes in options would publish secrets among them.
    lower = prefix.lower()
    if "hoodie.".startswith(lower) or lower.startswith("hoodie."):
        remedy = "give a prefix that no option of Hudi has"
        given.refuse(OptionError(option.key, prefix, remedy))
        return {}
    return {prefix + rest: text for rest, text in given.with_prefix(prefix)}


def agreed_operation(called: Operation, said: Operation | None) -> Operation:
    """Return the operation of a called function; refuse an option that contradicts it."""
    if said is None or said is called:
        return called
    if called is Operation.INSERT and said is Operation.BULK_INSERT:
        return said
    raise OptionError(
        OperationOptions.operation.key,
        said.value,
        f"the called function does {called.value}; leave the option out, or call that of the "
        "operation",
    )

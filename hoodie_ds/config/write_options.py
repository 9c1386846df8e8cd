"""What a write was asked for, parsed once.

``None`` in a field means that the option was not given: the table's own property, or the default
for a new table, decides elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hoodie_ds.config.archiving_options import ArchivingOptions
from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.clustering_options import ClusteringOptions
from hoodie_ds.config.compaction_options import CompactionOptions
from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import Operation
from hoodie_ds.config.file_options import FileOptions, StorageOptions
from hoodie_ds.config.index_options import IndexOptions
from hoodie_ds.config.key_generation import check_key_generation
from hoodie_ds.config.known_options import check_keys, collect, warn_of_ignored
from hoodie_ds.config.limits import Limits
from hoodie_ds.config.metadata_options import MetadataOptions
from hoodie_ds.config.operation_options import OperationOptions, agreed_operation
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.restricted_options import BOTH_RESTRICTED, WRITE_RESTRICTED
from hoodie_ds.config.service_switches import ServiceSwitches
from hoodie_ds.config.table_options import TableOptions
from hoodie_ds.errors import OptionError


@dataclass(frozen=True, kw_only=True)
class WriteOptions(OperationOptions, TableOptions, IndexOptions, FileOptions, StorageOptions):
    """The options of a write; sizes in bytes."""

    services: ServiceSwitches = field(default_factory=ServiceSwitches)
    concurrency: Concurrency = field(default_factory=Concurrency)
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    cleaning: CleaningOptions = field(default_factory=CleaningOptions)
    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    archiving: ArchivingOptions = field(default_factory=ArchivingOptions)
    metadata: MetadataOptions = field(default_factory=MetadataOptions)
    catalog: CatalogOptions = field(default_factory=CatalogOptions)
    limits: Limits = field(default_factory=Limits)
    """Sizes that have no option."""

    @classmethod
    def parse(cls, raw: Mapping[str, object]) -> WriteOptions:
        """Return the options that raw keys and strings mean; keys in any letter case.

        Options for reads pass. One `OptionError` reports all that is wrong: keys that are unknown,
        given twice or missing, values that are malformed or not supported, and contradictions.
        """
        given = collect(raw)
        given.refuse_restricted(WRITE_RESTRICTED)
        given.refuse_restricted(BOTH_RESTRICTED)
        options = cls.of(given)
        for problem in _contradictions(options):
            given.refuse(problem)
        given.check()
        warn_of_ignored(given)
        return options


def check_numbered(options: WriteOptions) -> None:
    """Refuse a batch write that names its writer and has no number: it could not be repeated."""
    if options.checkpoint_identifier is not None and options.batch_identifier is None:
        raise OptionError(
            OperationOptions.checkpoint_identifier.key,
            options.checkpoint_identifier,
            f"number the batch write in {OperationOptions.batch_identifier.key}, or leave the name "
            "of the writer out: without a number the write is made again each time it is repeated",
        )


def of_call(options: WriteOptions, operation: Operation) -> WriteOptions:
    """Return the options of a call that does an operation; refuse those that contradict it."""
    check_numbered(options)
    return replace(options, operation=agreed_operation(operation, options.operation))


def check_options(raw: Mapping[str, object]) -> None:
    """Raise one `OptionError` for all that is wrong with options, for a write or for a read.

    Only this library reads them, so every key has to be known.
    """
    checks = (WriteOptions.parse, ReadOptions.parse, check_keys)
    found = (problem for check in checks for problem in _problems(check, raw))
    problems = {str(problem): problem for problem in found}
    if problems:
        raise OptionError.of(list(problems.values()))


def _problems(
    parse: Callable[[Mapping[str, object]], object], raw: Mapping[str, object]
) -> tuple[OptionError, ...]:
    try:
        parse(raw)
    except OptionError as problem:
        return problem.parts
    return ()


def _contradictions(options: WriteOptions) -> Iterator[OptionError]:
    """Yield what is wrong where two options contradict one another whatever the table is."""
    fields = options.record_key_fields, options.partition_fields
    try:
        check_key_generation(options.key_generator, *fields)
    except OptionError as problem:
        yield problem
    if options.metadata.record_index and options.metadata.partition_index:
        yield OptionError(
            MetadataOptions.partition_index.key,
            True,
            f"there is one record index; leave this or {MetadataOptions.record_index.key} out",
        )
    if options.concurrency.is_shared and options.batches_per_commit > 1:
        yield OptionError(
            OperationOptions.batches_per_commit.key,
            options.batches_per_commit,
            "beside other writers each batch commits, as a conflict may undo it; leave it out",
        )
    if options.base_path:  # else that is what is wrong
        yield from options.concurrency.problems(options.base_path)
    keys, hashed = options.record_key_fields, options.bucket_hash_fields
    if keys is not None and hashed is not None and not set(hashed) <= set(keys):
        yield OptionError(
            IndexOptions.bucket_hash_fields.key,
            ",".join(hashed),
            f"each field must be one of the record key fields {','.join(keys)}",
        )
    number = options.batch_identifier
    if number is not None and options.checkpoint_identifier is None:
        yield OptionError(
            OperationOptions.batch_identifier.key,
            number,
            f"name the writer that counts in {OperationOptions.checkpoint_identifier.key}",
        )
    if number is not None and options.batches_per_commit > 1:
        yield OptionError(
            OperationOptions.batches_per_commit.key,
            options.batches_per_commit,
            f"a batch write with {OperationOptions.batch_identifier.key} is an instant of its own",
        )

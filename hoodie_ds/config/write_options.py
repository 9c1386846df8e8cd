"""What a write was asked for, parsed once.

``None`` in a field means that the user did not say: the table's own property, or the default for a
new table, decides elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from hoodie_ds.config.archiving_options import ArchivingOptions
from hoodie_ds.config.bucket_rules import BucketRules
from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.config.change_options import ChangeOptions
from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.clustering_options import ClusteringOptions
from hoodie_ds.config.compaction_options import CompactionOptions
from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import (
    BloomFilterType,
    DuplicatePolicy,
    IndexType,
    KeyGeneratorType,
    LogBlockFormat,
    MergeMode,
    Operation,
    ParquetCodec,
    PartialUpdateMode,
    SortMode,
    TableType,
)
from hoodie_ds.config.given_options import (
    KEYGEN_PREFIX,
    OLD_KEYGEN_PREFIX,
    GivenOptions,
    storage_options,
)
from hoodie_ds.config.key_generation import check_key_generation
from hoodie_ds.config.limits import Limits
from hoodie_ds.config.option import Option
from hoodie_ds.config.options import deletes as delete_keys
from hoodie_ds.config.options import files as file_keys
from hoodie_ds.config.options import index as index_keys
from hoodie_ds.config.options import storage as storage_keys
from hoodie_ds.config.options import stream as stream_keys
from hoodie_ds.config.options import write as write_keys
from hoodie_ds.config.options.restricted import BOTH_RESTRICTED, WRITE_RESTRICTED
from hoodie_ds.config.service_switches import ServiceSwitches
from hoodie_ds.errors import OptionError

T = TypeVar("T")

_MB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a write; sizes in bytes.

    Parameters
    ----------
    base_path : str
        The table's folder; never holds credentials.
    partitions_to_delete, exact_partitions
        Partition paths, and whether ``*`` in them stands for itself rather than for any text.
    partition_fields : tuple of str
        Column names; with the CUSTOM key generator ``column:SIMPLE`` or ``column:TIMESTAMP``.
    key_generator_options : mapping of str to str
        ``hoodie.keygen.timebased.*`` under their full names.
    complex_keygen_new_encoding : bool
        COMPLEX keys of one field are the bare value rather than ``field:value``.
    batch_identifier : int
        Number of a batch write, whose writer is `checkpoint_identifier`.
    accept_different : bool
        Whether a batch that comes again with other rows is taken for done.
    accept_missed : bool
        Whether a stream may go on in a table that has not seen its earlier batches.
    merge_hook : str or callable
        What merges rows with merge mode CUSTOM, or its import path.
    payload_class : str
        Java class that says the merge mode.
    partial_update_mode, unavailable_value
        Which values of a row are filled from another one, for a new table; and the marker of them.
    delete_field, delete_marker
        A column, and the text in it that marks a delete, for a new table.
    changes : ChangeOptions
        What a new table keeps of its changes.
    services : ServiceSwitches
        Which table services come along with batches.
    concurrency : Concurrency
        How the writer lives beside others.
    clustering : ClusteringOptions
        What a clustering rewrites, and what becomes of a write beside one.
    cleaning : CleaningOptions
        Which old files a clean deletes.
    compaction : CompactionOptions
        When file groups are compacted, and which.
    archiving : ArchivingOptions
        Which instants leave the active timeline.
    storage_options : mapping of str to str
        For the file system. Values are secrets and do not appear in the representation.
    extra_metadata : mapping of str to str
        For the commit's metadata, under their full names as given.
    limits : Limits
        Sizes that have no option.
    """

    base_path: str
    table_name: str | None = None
    database_name: str | None = None
    table_type: TableType | None = None
    operation: Operation | None = None
    partitions_to_delete: tuple[str, ...] | None = None
    exact_partitions: bool = False
    combine_before_insert: bool = False
    duplicate_policy: DuplicatePolicy = DuplicatePolicy.NONE
    sort_mode: SortMode = SortMode.NONE
    sort_columns: tuple[str, ...] | None = None
    tasks_per_partition: int | None = None
    allow_empty_commit: bool = False
    batches_per_commit: int = 1
    checkpoint_identifier: str | None = None
    batch_identifier: int | None = None
    accept_different: bool = False
    accept_missed: bool = False
    record_key_fields: tuple[str, ...] | None = None
    partition_fields: tuple[str, ...] | None = None
    ordering_fields: tuple[str, ...] | None = None
    key_generator: KeyGeneratorType | None = None
    key_generator_options: Mapping[str, str] = field(default_factory=dict)
    consistent_logical_timestamp: bool | None = None
    complex_keygen_new_encoding: bool | None = None
    hive_style: bool | None = None
    url_encode: bool | None = None
    populate_meta_fields: bool | None = None
    merge_mode: MergeMode | None = None
    merge_hook: str | Callable[..., object] | None = None
    payload_class: str | None = None
    partial_update_mode: PartialUpdateMode | None = None
    unavailable_value: str | None = None
    delete_field: str | None = None
    delete_marker: str | None = None
    changes: ChangeOptions = field(default_factory=ChangeOptions)
    index_type: IndexType | None = None
    num_buckets: int | None = None
    bucket_rules: BucketRules | None = None
    bucket_hash_fields: tuple[str, ...] | None = None
    bloom_num_entries: int = 60_000
    bloom_false_positives: float = 1e-9
    bloom_filter_type: BloomFilterType = BloomFilterType.DYNAMIC_V0
    bloom_max_entries: int = 100_000
    bloom_moves_records: bool = True
    simple_moves_records: bool = True
    state_is_global: bool = True
    state_max_bytes: int = 512 * _MB
    table_version: int | None = None
    timeline_layout: int | None = None
    metadata_enable: bool | None = None
    log_block_format: LogBlockFormat | None = None
    parquet_codec: ParquetCodec = ParquetCodec.SNAPPY
    parquet_block_bytes: int = 120 * _MB
    parquet_max_file_bytes: int = 120 * _MB
    small_file_bytes: int | None = None
    record_bytes_estimate: int = 1024
    record_size_threshold: float = 1.0
    small_file_candidates: int = 1
    logfile_max_bytes: int = 1024 * _MB
    log_block_max_bytes: int = 256 * _MB
    batch_bytes: int = 256 * _MB
    task_max_bytes: int = 1024 * _MB
    set_null_for_missing_columns: bool = False
    allow_non_atomic_storage: bool = False
    verify_checksums: bool = True
    storage_retry_ms: int = 60_000
    services: ServiceSwitches = field(default_factory=ServiceSwitches)
    concurrency: Concurrency = field(default_factory=Concurrency)
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    cleaning: CleaningOptions = field(default_factory=CleaningOptions)
    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    archiving: ArchivingOptions = field(default_factory=ArchivingOptions)
    catalog: CatalogOptions = field(default_factory=CatalogOptions)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def parse(cls, raw: Mapping[str, object]) -> WriteOptions:
        """Return the options that raw keys and texts mean.

        Parameters
        ----------
        raw : mapping of str to str
            As Spark or the user gave them; keys in any letter case. Options for reads pass.

        Returns
        -------
        WriteOptions

        Raises
        ------
        OptionError
            A key is unknown, given twice or missing, a value is malformed or asks for something
            that is not supported yet, or two options contradict one another; one error tells all
            that is wrong.
        """
        given = GivenOptions.collect(raw)
        given.refuse_restricted(WRITE_RESTRICTED)
        given.refuse_restricted(BOTH_RESTRICTED)
        base_path = given.get(write_keys.PATH)
        if not given.written(write_keys.PATH):
            given.refuse(OptionError(write_keys.PATH.key, None, "give the table's folder"))
        options = _build(given, base_path or "")
        for problem in _contradictions(options):
            given.refuse(problem)
        given.check()
        given.warn()
        return options


def _build(given: GivenOptions, base_path: str) -> WriteOptions:
    options = WriteOptions(
        base_path=base_path,
        table_name=given.get(write_keys.TABLE_NAME),
        database_name=given.get(write_keys.DATABASE_NAME),
        table_type=given.get(write_keys.TABLE_TYPE),
        operation=given.get(write_keys.OPERATION),
        partitions_to_delete=given.get(write_keys.PARTITIONS_TO_DELETE),
        combine_before_insert=given.get_or_default(write_keys.COMBINE_BEFORE_INSERT),
        duplicate_policy=_duplicate_policy(given),
        sort_mode=given.get_or_default(write_keys.SORT_MODE),
        sort_columns=given.get(write_keys.SORT_COLUMNS),
        tasks_per_partition=given.get(write_keys.TASKS_PER_PARTITION),
        allow_empty_commit=given.get_or_default(write_keys.ALLOW_EMPTY_COMMIT),
        batches_per_commit=given.get_or_default(stream_keys.BATCHES_PER_COMMIT),
        checkpoint_identifier=given.get(stream_keys.CHECKPOINT_IDENTIFIER),
        batch_identifier=given.get(stream_keys.BATCH_IDENTIFIER),
        accept_different=given.get_or_default(stream_keys.ACCEPT_DIFFERENT),
        accept_missed=given.get_or_default(stream_keys.ACCEPT_MISSED),
        record_key_fields=given.get(write_keys.RECORD_KEY_FIELDS),
        partition_fields=given.get(write_keys.PARTITION_FIELDS),
        ordering_fields=given.get(write_keys.ORDERING_FIELDS),
        key_generator=_either(given, write_keys.KEY_GENERATOR_TYPE, write_keys.KEY_GENERATOR_CLASS),
        key_generator_options=_key_generator_options(given),
        consistent_logical_timestamp=given.get(write_keys.CONSISTENT_LOGICAL_TIMESTAMP),
        complex_keygen_new_encoding=given.get(write_keys.COMPLEX_KEYGEN_NEW_ENCODING),
        hive_style=given.get(write_keys.HIVE_STYLE),
        url_encode=given.get(write_keys.URL_ENCODE),
        populate_meta_fields=given.get(write_keys.POPULATE_META_FIELDS),
        merge_mode=_either(given, write_keys.MERGE_MODE, write_keys.PAYLOAD_CLASS),
        merge_hook=given.get(write_keys.MERGE_HOOK),
        payload_class=next((t.strip() for _, t in given.written(write_keys.PAYLOAD_CLASS)), None),
        partial_update_mode=given.get(write_keys.PARTIAL_UPDATE_MODE),
        unavailable_value=given.get(write_keys.UNAVAILABLE_VALUE),
        delete_field=given.get(delete_keys.DELETE_FIELD),
        delete_marker=given.get(delete_keys.DELETE_MARKER),
        changes=ChangeOptions.of(given),
        table_version=given.get(write_keys.TABLE_VERSION),
        metadata_enable=given.get(write_keys.METADATA_ENABLE),
        log_block_format=given.get(write_keys.LOG_BLOCK_FORMAT),
        parquet_codec=given.get_or_default(write_keys.PARQUET_CODEC),
        parquet_block_bytes=given.get_or_default(write_keys.PARQUET_BLOCK_BYTES),
        parquet_max_file_bytes=given.get_or_default(file_keys.PARQUET_MAX_FILE_BYTES),
        small_file_bytes=given.get(file_keys.SMALL_FILE_BYTES),
        record_bytes_estimate=given.get_or_default(file_keys.RECORD_BYTES_ESTIMATE),
        record_size_threshold=given.get_or_default(file_keys.RECORD_SIZE_THRESHOLD),
        small_file_candidates=given.get_or_default(file_keys.SMALL_FILE_CANDIDATES),
        logfile_max_bytes=given.get_or_default(write_keys.LOGFILE_MAX_BYTES),
        log_block_max_bytes=given.get_or_default(write_keys.LOG_BLOCK_MAX_BYTES),
        batch_bytes=given.get_or_default(write_keys.BATCH_BYTES),
        task_max_bytes=given.get_or_default(write_keys.TASK_MAX_BYTES),
        set_null_for_missing_columns=given.get_or_default(write_keys.SET_NULL_FOR_MISSING_COLUMNS),
        allow_non_atomic_storage=given.get_or_default(storage_keys.ALLOW_NON_ATOMIC_STORAGE),
        verify_checksums=given.get_or_default(storage_keys.VERIFY_CHECKSUMS),
        storage_retry_ms=given.get_or_default(storage_keys.RETRY_DEADLINE_MS),
        concurrency=Concurrency.of(given),
        storage_options=storage_options(given),
        extra_metadata=_extra_metadata(given),
    )
    return _with_services(_with_index(options, given), given)


def _with_services(options: WriteOptions, given: GivenOptions) -> WriteOptions:
    cleaning = CleaningOptions.of(given)
    return replace(
        options,
        timeline_layout=given.get(write_keys.TIMELINE_LAYOUT),
        services=ServiceSwitches.of(given),
        clustering=ClusteringOptions.of(given),
        cleaning=cleaning,
        compaction=CompactionOptions.of(given),
        archiving=ArchivingOptions.of(given, cleaning),
        catalog=CatalogOptions.of(given),
    )


def _with_index(options: WriteOptions, given: GivenOptions) -> WriteOptions:
    return replace(
        options,
        index_type=given.get(index_keys.INDEX_TYPE),
        num_buckets=given.get(index_keys.NUM_BUCKETS),
        bucket_rules=given.get(index_keys.PARTITION_BUCKETS),
        bucket_hash_fields=given.get(index_keys.BUCKET_HASH_FIELDS),
        bloom_num_entries=given.get_or_default(index_keys.BLOOM_NUM_ENTRIES),
        bloom_false_positives=given.get_or_default(index_keys.BLOOM_FALSE_POSITIVES),
        bloom_filter_type=given.get_or_default(index_keys.BLOOM_FILTER_TYPE),
        bloom_max_entries=given.get_or_default(index_keys.BLOOM_MAX_ENTRIES),
        bloom_moves_records=given.get_or_default(index_keys.BLOOM_MOVES_RECORDS),
        simple_moves_records=given.get_or_default(index_keys.SIMPLE_MOVES_RECORDS),
        state_is_global=given.get_or_default(index_keys.STATE_IS_GLOBAL),
        state_max_bytes=given.get_or_default(index_keys.STATE_MAX_BYTES),
    )


def _either(given: GivenOptions, option: Option[T], other: Option[T]) -> T | None:
    """Return the value of two options that say one thing in two vocabularies."""
    value, second = given.get(option), given.get(other)
    if value is None or second is None:
        return second if value is None else value
    if value != second:
        key, text = given.written(other)[0]
        given.refuse(OptionError(key, text, f"contradicts {given.written(option)[0][0]}; give one"))
    return value


def _duplicate_policy(given: GivenOptions) -> DuplicatePolicy:
    policy, drop = (
        given.get(write_keys.DUPLICATE_POLICY),
        given.get(write_keys.INSERT_DROP_DUPLICATES),
    )
    if drop and policy not in (None, DuplicatePolicy.DROP):
        key, text = given.written(write_keys.INSERT_DROP_DUPLICATES)[0]
        remedy = f"contradicts {write_keys.DUPLICATE_POLICY.key}; give one"
        given.refuse(OptionError(key, text, remedy))
    return policy or (DuplicatePolicy.DROP if drop else DuplicatePolicy.NONE)


def _key_generator_options(given: GivenOptions) -> dict[str, str]:
    found: dict[str, str] = {}
    for prefix in (KEYGEN_PREFIX, OLD_KEYGEN_PREFIX):
        for suffix, text in given.with_prefix(prefix):
            key = KEYGEN_PREFIX + suffix.lower()
            if found.setdefault(key, text) != text:
                given.refuse(OptionError(prefix + suffix, text, f"contradicts {key}; give one"))
    return found


def _extra_metadata(given: GivenOptions) -> dict[str, str]:
    prefix = given.get(write_keys.EXTRA_METADATA_PREFIX)
    if prefix is None:
        return {}
    # Commit metadata is public: a prefix that takes in options would publish secrets among them.
    lower = prefix.lower()
    if "hoodie.".startswith(lower) or lower.startswith("hoodie."):
        remedy = "give a prefix that no option of Hudi has"
        given.refuse(OptionError(write_keys.EXTRA_METADATA_PREFIX.key, prefix, remedy))
        return {}
    return {prefix + rest: text for rest, text in given.with_prefix(prefix)}


def _contradictions(options: WriteOptions) -> Iterator[OptionError]:
    """Yield what is wrong where two options contradict one another whatever the table is."""
    fields = options.record_key_fields, options.partition_fields
    try:
        check_key_generation(options.key_generator, *fields)
    except OptionError as problem:
        yield problem
    if options.concurrency.is_shared and options.batches_per_commit > 1:
        yield OptionError(
            stream_keys.BATCHES_PER_COMMIT.key,
            options.batches_per_commit,
            "beside other writers each batch commits, as a conflict may undo it; leave it out",
        )
    keys, hashed = options.record_key_fields, options.bucket_hash_fields
    if keys is not None and hashed is not None and not set(hashed) <= set(keys):
        yield OptionError(
            index_keys.BUCKET_HASH_FIELDS.key,
            ",".join(hashed),
            f"each field must be one of the record key fields {','.join(keys)}",
        )
    number = options.batch_identifier
    if number is not None and options.checkpoint_identifier is None:
        yield OptionError(
            stream_keys.BATCH_IDENTIFIER.key,
            number,
            f"name the writer that counts in {stream_keys.CHECKPOINT_IDENTIFIER.key}",
        )
    if number is not None and options.batches_per_commit > 1:
        yield OptionError(
            stream_keys.BATCHES_PER_COMMIT.key,
            options.batches_per_commit,
            f"a batch write with {stream_keys.BATCH_IDENTIFIER.key} is an instant of its own",
        )

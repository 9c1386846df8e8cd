"""The entries of ``hoodie.properties`` for a new table.

Invariant: the entries mean the same to every reader of the table's version. Keys introduced by
later versions are left out, and the merge is expressed so that no reader can take it for the other
one. `_later_entries` has what the versions differ in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hoodie_ds.config.enums import (
    IndexType,
    KeyGeneratorType,
    MergeMode,
    PartialUpdateMode,
    SupplementalLogging,
    TableType,
)
from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.key_generation import (
    check_key_generation,
    infer_key_generator,
    lacking_stored_keys,
    partition_names,
)
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.partial_updates import PAYLOAD_ORDERS, partial_update_entries
from hoodie_ds.config.table_options import (
    DEFAULT_PAYLOAD,
    KEYGEN_PREFIX,
    OVERWRITE_PAYLOAD,
    PAYLOAD_MODES,
    ChangeOptions,
    TableOptions,
    hook_name,
)
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError

_DEFAULT_BUCKETS: Final = 4
_DEFAULT_VERSION: Final = 6
_LAST_WITH_PAYLOADS: Final = 8
_LAST_WITH_BARE_KEYS: Final = 8
_EXTRACTORS: Final = "org.apache.hudi.hive."
_STRATEGIES: Final = {
    MergeMode.EVENT_TIME_ORDERING: keys.EVENT_TIME_STRATEGY,
    MergeMode.COMMIT_TIME_ORDERING: keys.COMMIT_TIME_STRATEGY,
    MergeMode.CUSTOM: keys.PAYLOAD_STRATEGY,
}


def new_table_entries(options: WriteOptions) -> dict[str, str]:
    """Return the entries that a user's options ask for, without the checksum.

    One `OptionError` reports all that is wrong: a missing name, fields that do not fit the key
    generator or merge mode.
    """
    problems: list[OptionError] = []
    name = options.table_name
    if name is None:
        problems.append(
            OptionError(OperationOptions.table_name.key, None, "a new table needs a name")
        )
    elif "/" in name:
        problems.append(
            OptionError(OperationOptions.table_name.key, name, "a table's name has no '/'")
        )
    version = options.table_version or _DEFAULT_VERSION
    layout = 1 if version == _DEFAULT_VERSION else 2
    if options.timeline_layout not in (None, layout):
        key, remedy = FileOptions.timeline_layout.key, f"a table of version {version} has {layout}"
        problems.append(OptionError(key, options.timeline_layout, remedy))
    entries = {
        keys.NAME: name or "",
        keys.TYPE: (options.table_type or TableType.COPY_ON_WRITE).value,
        keys.VERSION: str(version),
        keys.LAYOUT: str(layout),
        keys.ARCHIVE_FOLDER: "archived",
        keys.TIMEZONE: "UTC",
        keys.HIVE_STYLE: _flag(options.hive_style),
        keys.URL_ENCODE: _flag(options.url_encode),
        keys.DROP_PARTITION_COLUMNS: "false",
    }
    if options.populate_meta_fields is False:
        entries[keys.POPULATE_META_FIELDS] = "false"
    if options.database_name is not None:
        entries[keys.DATABASE] = options.database_name
    for part in (_key_entries, _merge_entries, _delete_entries, _change_entries, _bucket_entries):
        entries |= _tried(part, options, problems)
    if problems:
        raise OptionError.of(problems)
    return entries if version == _DEFAULT_VERSION else _later_entries(entries, options, version)


def _later_entries(entries: dict[str, str], options: WriteOptions, version: int) -> dict[str, str]:
    """Translate the entries of version 6 into those of version 8 or 9.

    From version 8 on the key generator goes by its type, partition fields of a CUSTOM one have
    their types beside them, and a merge has a mode. In version 9 a mode alone tells the merge,
    unless it is a custom one (Hudi's ``HoodieTableConfig`` and ``EightToNineUpgradeHandler``).
    """
    generator = KeyGeneratorType.from_java_class(entries.pop(keys.KEY_GENERATOR_CLASS))
    assert generator is not None, "it is one of those that are known"
    merge = _later_merge(entries, options, version)
    ordering = entries.pop(keys.PRECOMBINE_FIELD, ",".join(options.ordering_fields or ()))
    typed = entries.pop(keys.PARTITION_SPECS, entries.get(keys.PARTITION_FIELDS, ""))
    later = {
        keys.INITIAL_VERSION: str(version),
        keys.ARCHIVE_FOLDER: "history",
        keys.TIMELINE_PATH: "timeline",
        keys.HISTORY_PATH: "history",
        keys.FORMAT: "native",
        keys.KEY_GENERATOR_TYPE: generator.value,
        keys.PARTITION_FIELDS: typed,
        keys.POPULATE_META_FIELDS: _flag(options.populate_meta_fields is not False),
        keys.BASE_FORMAT: "PARQUET",
        keys.SEVERAL_BASE_FORMATS: "false",
        keys.METAFILE_IN_BASE_FORMAT: "false",
        keys.PARTITION_EXTRACTOR: _EXTRACTORS + _extractor(options),
        keys.CDC_ENABLED: entries.get(keys.CDC_ENABLED, "false"),
        **({keys.ORDERING_FIELDS: ordering} if ordering else {}),
    }
    return {**entries, **later, **merge}


def _later_merge(entries: dict[str, str], options: WriteOptions, version: int) -> dict[str, str]:
    """Take the merge out of entries of version 6, and return it in the terms of a later version."""
    payload = entries.pop(keys.PAYLOAD_CLASS)
    mode = MergeMode(entries.pop(keys.MERGE_MODE, PAYLOAD_MODES.get(payload, MergeMode.CUSTOM)))
    entries.pop(keys.MERGER_STRATEGY, None)
    given = options.payload_class
    if version <= _LAST_WITH_PAYLOADS:
        return {
            keys.MERGE_MODE: mode.value,
            keys.MERGE_STRATEGY_ID: _STRATEGIES[mode],
            keys.PAYLOAD_CLASS: given or payload,
        }
    if payload == keys.FILL_UNAVAILABLE_PAYLOAD:
        by_event_time = keys.PRECOMBINE_FIELD in entries
        mode = MergeMode.EVENT_TIME_ORDERING if by_event_time else MergeMode.COMMIT_TIME_ORDERING
    elif payload in PAYLOAD_ORDERS:
        mode, given = PAYLOAD_ORDERS[payload], payload
        entries[keys.PARTIAL_UPDATE_MODE] = PartialUpdateMode.IGNORE_DEFAULTS.value
    elif mode is MergeMode.CUSTOM:
        return {
            keys.MERGE_MODE: mode.value,
            keys.MERGE_STRATEGY_ID: _STRATEGIES[mode],
            keys.PAYLOAD_CLASS: payload,
        }
    return {keys.MERGE_MODE: mode.value, **({keys.LEGACY_PAYLOAD: given} if given else {})}


def _extractor(options: WriteOptions) -> str:
    """Return which class of Hudi's finds the values of partitions in paths, for catalogs."""
    match options.partition_fields:
        case (_,):
            return (
                "HiveStylePartitionValueExtractor"
                if options.hive_style
                else "SinglePartPartitionValueExtractor"
            )
        case ():
            return "NonPartitionedExtractor"
        case _:
            return "MultiPartKeysValueExtractor"


def _tried(
    part: Callable[[WriteOptions], dict[str, str]],
    options: WriteOptions,
    problems: list[OptionError],
) -> dict[str, str]:
    try:
        return part(options)
    except OptionError as problem:
        problems.append(problem)
        return {}


def _key_entries(options: WriteOptions) -> dict[str, str]:
    record_keys = options.record_key_fields or ()
    partition = options.partition_fields or ()
    generator = options.key_generator or infer_key_generator(record_keys, partition)
    check_key_generation(generator, record_keys, partition)
    _check_time_format(options, generator, partition)
    _check_virtual_keys(options, generator)
    entries = {keys.KEY_GENERATOR_CLASS: generator.java_class, **options.key_generator_options}
    if record_keys:
        entries[keys.RECORD_KEYS] = ",".join(record_keys)
    if partition:
        entries[keys.PARTITION_FIELDS] = ",".join(partition_names(partition))
    if generator is KeyGeneratorType.CUSTOM:
        # Readers of version 6 expect plain column names above; the types are kept apart.
        entries[keys.PARTITION_SPECS] = ",".join(partition)
    if generator is KeyGeneratorType.COMPLEX and len(record_keys) == 1:
        # Releases of Hudi disagree about such keys: name the encoding of the table.
        value_only = options.complex_keygen_new_encoding is True
        if value_only and (options.table_version or _DEFAULT_VERSION) > _LAST_WITH_BARE_KEYS:
            raise OptionError(
                TableOptions.complex_keygen_new_encoding.key,
                "true",
                f"in tables of version {options.table_version} such a key is field:value; leave "
                "the option out",
            )
        entries[keys.COMPLEX_ENCODING] = "VALUE_ONLY" if value_only else "FIELD_PREFIXED"
    return entries


def _check_time_format(
    options: WriteOptions, generator: KeyGeneratorType, partition: tuple[str, ...]
) -> None:
    custom_time = any(field.upper().endswith(":TIMESTAMP") for field in partition)
    if generator is not KeyGeneratorType.TIMESTAMP and not custom_time:
        return
    for suffix in ("timestamp.type", "output.dateformat"):
        if KEYGEN_PREFIX + suffix not in options.key_generator_options:
            raise OptionError(KEYGEN_PREFIX + suffix, None, "a partition by time needs it")


def _check_virtual_keys(options: WriteOptions, generator: KeyGeneratorType) -> None:
    if options.populate_meta_fields is not False:
        return
    record_keys = options.record_key_fields or ()
    for lacking in lacking_stored_keys(generator, record_keys, options.index_type):
        raise OptionError(
            TableOptions.populate_meta_fields.key, "false", f"does not go with {lacking}"
        )


def _merge_entries(options: WriteOptions) -> dict[str, str]:
    filled = partial_update_entries(options)
    if filled is not None:
        return filled
    ordering = options.ordering_fields or ()
    mode = options.merge_mode
    if mode is MergeMode.CUSTOM or options.merge_hook is not None:
        return _custom_entries(options)
    if mode is MergeMode.EVENT_TIME_ORDERING and not ordering:
        raise OptionError(
            TableOptions.ordering_fields.key, None, "EVENT_TIME_ORDERING needs an ordering field"
        )
    if mode is None:
        mode = MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING
    if mode is MergeMode.COMMIT_TIME_ORDERING:
        # An ordering field here would be read as event-time ordering by some engines.
        return {keys.PAYLOAD_CLASS: OVERWRITE_PAYLOAD}
    return {
        keys.PAYLOAD_CLASS: DEFAULT_PAYLOAD,
        keys.MERGER_STRATEGY: keys.EVENT_TIME_STRATEGY,
        keys.PRECOMBINE_FIELD: ",".join(ordering),
    }


def _delete_entries(options: WriteOptions) -> dict[str, str]:
    name, marker = options.delete_field, options.delete_marker
    if name is None and marker is None:
        return {}
    for option, given in ((TableOptions.delete_field, name), (TableOptions.delete_marker, marker)):
        if given is None:
            raise OptionError(option.key, None, "a column that marks deletes needs it")
    if not options.record_key_fields:
        raise OptionError(
            TableOptions.record_key_fields.key, None, "a table with deletes needs record key fields"
        )
    return {keys.DELETE_FIELD: name or "", keys.DELETE_MARKER: marker or ""}


def _change_entries(options: WriteOptions) -> dict[str, str]:
    logging = options.changes.logging
    if options.changes.enabled:
        logged = logging or SupplementalLogging.DATA_BEFORE_AFTER
        return {keys.CDC_ENABLED: "true", keys.CDC_LOGGING: logged.value}
    if logging is None:
        return {}
    raise OptionError(
        ChangeOptions.logging.key,
        logging.value,
        f"it takes effect with {ChangeOptions.enabled.key}=true; say that, or leave it out",
    )


def _custom_entries(options: WriteOptions) -> dict[str, str]:
    hook, payload = options.merge_hook, options.payload_class
    if hook is None and payload is None:
        raise OptionError(TableOptions.merge_hook.key, None, "merge mode CUSTOM needs it")
    if hook is not None and payload is not None:
        raise OptionError(TableOptions.payload_class.key, payload, "a merge hook takes its place")
    if options.merge_mode not in (None, MergeMode.CUSTOM):
        raise OptionError(
            TableOptions.merge_mode.key, options.merge_mode.value, "a merge hook needs CUSTOM"
        )
    entries = {
        keys.MERGE_MODE: MergeMode.CUSTOM.value,
        keys.PAYLOAD_CLASS: payload or keys.HOOK_PAYLOAD,
        keys.MERGER_STRATEGY: keys.PAYLOAD_STRATEGY,
    }
    if hook is not None:
        entries[keys.MERGE_HOOK] = hook_name(hook)
    if options.ordering_fields:
        entries[keys.PRECOMBINE_FIELD] = ",".join(options.ordering_fields)
    return entries


def _bucket_entries(options: WriteOptions) -> dict[str, str]:
    record_keys = options.record_key_fields or ()
    index_type = options.index_type or (_default_index(options) if record_keys else None)
    rules = options.bucket_rules
    if index_type is not IndexType.BUCKET:
        if rules is not None:
            raise OptionError(keys.PARTITION_BUCKETS, str(rules), "only the BUCKET index has it")
        return {keys.INDEX_TYPE: index_type.value} if index_type and record_keys else {}
    if not record_keys:
        raise OptionError(
            TableOptions.record_key_fields.key, None, "the BUCKET index needs record key fields"
        )
    # In the order of the key, in which engines hash the values, not in that of the option.
    hashed = options.bucket_hash_fields or record_keys
    return {
        keys.INDEX_TYPE: index_type.value,
        keys.NUM_BUCKETS: str(options.num_buckets or _DEFAULT_BUCKETS),
        keys.HASH_FIELDS: ",".join(name for name in record_keys if name in hashed),
        keys.KEYS_OF_BUCKETS: ",".join(record_keys),
        **({keys.PARTITION_BUCKETS: str(rules)} if rules else {}),
    }


def _default_index(options: WriteOptions) -> IndexType:
    if options.metadata_enable is False or options.num_buckets is not None:
        return IndexType.BUCKET
    if options.metadata.partition_index:
        return IndexType.RECORD_LEVEL_INDEX
    return IndexType.RECORD_INDEX if options.metadata.record_index else IndexType.BUCKET


def _flag(value: bool | None) -> str:
    return "true" if value else "false"

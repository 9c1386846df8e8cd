"""The entries of ``hoodie.properties`` for a new table of version 6.

Invariant: the entries mean the same to every reader of version 6. Keys introduced by later
versions are left out, and the merge is expressed so that no reader can take it for the other one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hoodie_ds.config.enums import IndexType, KeyGeneratorType, MergeMode, TableType
from hoodie_ds.config.given_options import KEYGEN_PREFIX
from hoodie_ds.config.key_generation import (
    check_key_generation,
    infer_key_generator,
    partition_names,
)
from hoodie_ds.config.options import write as write_keys
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.partial_updates import partial_update_entries
from hoodie_ds.config.write_options import WriteOptions, hook_name
from hoodie_ds.errors import OptionError

_DEFAULT_BUCKETS: Final = 4


def new_table_entries(options: WriteOptions) -> dict[str, str]:
    """Return the entries that a user's options ask for, without the checksum.

    Parameters
    ----------
    options : WriteOptions
        What the user said.

    Returns
    -------
    dict of str to str
        Keys and values of the file.

    Raises
    ------
    OptionError
        The name is missing, or the fields do not fit the key generator or merge mode; one error
        tells all that is wrong.
    """
    problems: list[OptionError] = []
    name = options.table_name
    if name is None:
        problems.append(OptionError(write_keys.TABLE_NAME.key, None, "a new table needs a name"))
    elif "/" in name:
        problems.append(OptionError(write_keys.TABLE_NAME.key, name, "a table's name has no '/'"))
    entries = {
        keys.NAME: name or "",
        keys.TYPE: (options.table_type or TableType.COPY_ON_WRITE).value,
        keys.VERSION: "6",
        keys.LAYOUT: "1",
        keys.ARCHIVE_FOLDER: "archived",
        keys.TIMEZONE: "UTC",
        keys.HIVE_STYLE: _flag(options.hive_style),
        keys.URL_ENCODE: _flag(options.url_encode),
        keys.DROP_PARTITION_COLUMNS: "false",
    }
    if options.database_name is not None:
        entries[keys.DATABASE] = options.database_name
    for part in (_key_entries, _merge_entries, _bucket_entries):
        entries |= _tried(part, options, problems)
    if problems:
        raise OptionError.of(problems)
    return entries


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
    entries = {keys.KEY_GENERATOR_CLASS: generator.java_class, **options.key_generator_options}
    if record_keys:
        entries[keys.RECORD_KEYS] = ",".join(record_keys)
    if partition:
        entries[keys.PARTITION_FIELDS] = ",".join(partition_names(partition))
    if generator is KeyGeneratorType.CUSTOM:
        # Readers of version 6 expect plain column names above; the types are kept beside them.
        entries[keys.PARTITION_SPECS] = ",".join(partition)
    if generator is KeyGeneratorType.COMPLEX and len(record_keys) == 1:
        # Releases of Hudi disagree about such keys: say which encoding the table has.
        value_only = options.complex_keygen_new_encoding is True
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
            write_keys.ORDERING_FIELDS.key, None, "EVENT_TIME_ORDERING needs an ordering field"
        )
    if mode is None:
        mode = MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING
    if mode is MergeMode.COMMIT_TIME_ORDERING:
        # An ordering field here would be read as event-time ordering by some engines.
        return {keys.PAYLOAD_CLASS: write_keys.OVERWRITE_PAYLOAD}
    return {
        keys.PAYLOAD_CLASS: write_keys.DEFAULT_PAYLOAD,
        keys.MERGER_STRATEGY: keys.EVENT_TIME_STRATEGY,
        keys.PRECOMBINE_FIELD: ",".join(ordering),
    }


def _custom_entries(options: WriteOptions) -> dict[str, str]:
    hook, payload = options.merge_hook, options.payload_class
    if hook is None and payload is None:
        raise OptionError(write_keys.MERGE_HOOK.key, None, "merge mode CUSTOM needs it")
    if hook is not None and payload is not None:
        raise OptionError(write_keys.PAYLOAD_CLASS.key, payload, "a merge hook takes its place")
    if options.merge_mode not in (None, MergeMode.CUSTOM):
        raise OptionError(
            write_keys.MERGE_MODE.key, options.merge_mode.value, "a merge hook needs CUSTOM"
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
    index_type = options.index_type or (IndexType.BUCKET if record_keys else None)
    rules = options.bucket_rules
    if index_type is not IndexType.BUCKET:
        if rules is not None:
            raise OptionError(keys.PARTITION_BUCKETS, str(rules), "only the BUCKET index has it")
        return {keys.INDEX_TYPE: index_type.value} if index_type and record_keys else {}
    if not record_keys:
        raise OptionError(
            write_keys.RECORD_KEY_FIELDS.key, None, "the BUCKET index needs record key fields"
        )
    # In the order of the key: engines hash the values in that order, whatever the option says.
    hashed = options.bucket_hash_fields or record_keys
    return {
        keys.INDEX_TYPE: index_type.value,
        keys.NUM_BUCKETS: str(options.num_buckets or _DEFAULT_BUCKETS),
        keys.HASH_FIELDS: ",".join(name for name in record_keys if name in hashed),
        keys.KEYS_OF_BUCKETS: ",".join(record_keys),
        **({keys.PARTITION_BUCKETS: str(rules)} if rules else {}),
    }


def _flag(value: bool | None) -> str:
    return "true" if value else "false"

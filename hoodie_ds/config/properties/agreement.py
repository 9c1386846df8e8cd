"""Options of a write held against the table it writes to.

Invariant: an option that the user gave and the table contradicts is never silently dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_ds.config.enums import IndexType, MergeMode, PartialUpdateMode
from hoodie_ds.config.key_generation import partition_names
from hoodie_ds.config.option import Option
from hoodie_ds.config.options import changes as change_keys
from hoodie_ds.config.options import deletes as delete_keys
from hoodie_ds.config.options import index as index_keys
from hoodie_ds.config.options import stream as stream_keys
from hoodie_ds.config.options import write as write_keys
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError


def check_agreement(options: WriteOptions, table: TableProperties) -> None:
    """Raise one `OptionError` for all options that contradict the table.

    Parameters
    ----------
    options : WriteOptions
        What the user said; what is ``None`` agrees with everything.
    table : TableProperties
        What the table says; where it is ``None`` nothing is contradicted.
    """
    table.check_merge_hook(options.merge_hook)
    if table.supplemental_logging is not None and options.batches_per_commit > 1:
        raise OptionError(
            stream_keys.BATCHES_PER_COMMIT.key,
            options.batches_per_commit,
            f"table {table.name!r} keeps change data, in which a key changes once in a commit; "
            "leave the option out",
        )
    check_same(options, table)


def check_same(options: WriteOptions, table: TableProperties) -> None:
    """Raise one `OptionError` for all options that say another thing than the table.

    As `check_agreement`, but for the merge hook, which only those need who merge rows.
    """
    problems = [
        OptionError(
            key,
            _show(given),
            f"table {table.name!r} has {_show(stored)!r}; "
            "leave the option out or write to another table",
        )
        for key, given, stored in _pairs(options, table)
        if given is not None and stored is not None and given != stored
    ]
    if problems:
        raise OptionError.of(problems)


def _pairs(options: WriteOptions, table: TableProperties) -> Iterator[tuple[str, object, object]]:
    fixed: tuple[tuple[Option[object], object, object], ...] = (
        (write_keys.TABLE_NAME, options.table_name, table.name),
        (write_keys.DATABASE_NAME, options.database_name, table.database),
        (write_keys.TABLE_TYPE, options.table_type, table.table_type),
        (write_keys.TABLE_VERSION, options.table_version, table.version),
        (write_keys.TIMELINE_LAYOUT, options.timeline_layout, table.layout_version),
        (write_keys.RECORD_KEY_FIELDS, options.record_key_fields, table.record_key_fields),
        (write_keys.KEY_GENERATOR_TYPE, options.key_generator, table.key_generator),
        (write_keys.HIVE_STYLE, options.hive_style, table.hive_style),
        (write_keys.URL_ENCODE, options.url_encode, table.url_encode),
        (
            write_keys.POPULATE_META_FIELDS,
            options.populate_meta_fields,
            table.populate_meta_fields,
        ),
        (index_keys.NUM_BUCKETS, options.num_buckets, table.num_buckets),
        (change_keys.CDC_ENABLED, options.changes.enabled, table.supplemental_logging is not None),
        (
            change_keys.SUPPLEMENTAL_LOGGING,
            options.changes.logging,
            table.supplemental_logging or "",
        ),
    )
    for option, given, stored in fixed:
        yield option.key, given, stored
    yield from _merge_pairs(options, table)
    yield from _partition_pairs(options, table)
    # Indexes that look keys up share one layout; a bucket index has another.
    if IndexType.BUCKET in (options.index_type, table.index_type):
        yield index_keys.INDEX_TYPE.key, options.index_type, table.index_type
    if options.bucket_hash_fields is not None and table.bucket_hash_fields is not None:
        yield (
            index_keys.BUCKET_HASH_FIELDS.key,
            sorted(options.bucket_hash_fields),
            sorted(table.bucket_hash_fields),
        )
    # A table ordered by commit time stores no ordering field, so giving one contradicts nothing.
    if table.ordering_fields or table.order is not MergeMode.COMMIT_TIME_ORDERING:
        yield write_keys.ORDERING_FIELDS.key, options.ordering_fields, table.ordering_fields
    prefixed = table.complex_key_prefixed
    if not table.populate_meta_fields:  # keys are made anew at each read, always alike
        prefixed = table.makes_prefixed_keys
        consistent = options.consistent_logical_timestamp
        yield write_keys.CONSISTENT_LOGICAL_TIMESTAMP.key, consistent, False
    if prefixed is not None:
        given_encoding = options.complex_keygen_new_encoding
        yield write_keys.COMPLEX_KEYGEN_NEW_ENCODING.key, given_encoding, not prefixed
    for key, text in options.key_generator_options.items():
        yield key, text, table.key_generator_options.get(key)


def _merge_pairs(
    options: WriteOptions, table: TableProperties
) -> Iterator[tuple[str, object, object]]:
    update, mode = table.partial_update, options.merge_mode
    # Up to version 8 partial updates are CUSTOM, whatever order they go by, as payloads are here.
    stored_mode = table.merge_mode
    if update is not None and mode is MergeMode.CUSTOM:
        stored_mode = MergeMode.CUSTOM
    elif options.partial_update_mode is not None:
        stored_mode = table.order
    yield write_keys.MERGE_MODE.key, mode, stored_mode
    if mode is MergeMode.CUSTOM:
        yield write_keys.PAYLOAD_CLASS.key, options.payload_class, update.payload if update else ""
    stored = update.mode if update else ""
    yield write_keys.PARTIAL_UPDATE_MODE.key, options.partial_update_mode, stored
    marked = update is not None and update.mode is PartialUpdateMode.FILL_UNAVAILABLE
    marker = update.marker if update and marked else ""
    yield write_keys.UNAVAILABLE_VALUE.key, options.unavailable_value, marker
    name, text = table.delete_marker or ("", "")
    yield delete_keys.DELETE_FIELD.key, options.delete_field, name
    yield delete_keys.DELETE_MARKER.key, options.delete_marker, text


def _partition_pairs(
    options: WriteOptions, table: TableProperties
) -> Iterator[tuple[str, object, object]]:
    """Compare the types of partition fields too where both sides name them."""
    fields = options.partition_fields
    if fields is None:
        return
    typed = bool(table.partition_field_specs) and any(":" in field for field in fields)
    if typed:
        yield (
            write_keys.PARTITION_FIELDS.key,
            tuple(_canonical(field) for field in fields),
            tuple(_canonical(field) for field in table.partition_field_specs),
        )
    else:
        yield write_keys.PARTITION_FIELDS.key, partition_names(fields), table.partition_fields


def _canonical(spec: str) -> str:
    name, _, kind = spec.partition(":")
    return f"{name}:{kind.upper()}"


def _show(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return ",".join(value)
    return str(getattr(value, "value", value))

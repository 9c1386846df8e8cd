"""Options of a write held against the table it writes to.

Invariant: an option that the user gave and the table contradicts is never silently dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoodie_ds.config.enums import IndexType, MergeMode, PartialUpdateMode
from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.config.index_options import IndexOptions
from hoodie_ds.config.key_generation import partition_names
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.option import Option
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.table_options import ChangeOptions, TableOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError


def check_agreement(options: WriteOptions, table: TableProperties) -> None:
    """Raise one `OptionError` for all options that contradict the table.

    An option that is None agrees with everything, and a property that is None with every option.
    """
    table.check_merge_hook(options.merge_hook)
    if table.supplemental_logging is not None and options.batches_per_commit > 1:
        raise OptionError(
            OperationOptions.batches_per_commit.key,
            options.batches_per_commit,
            f"table {table.name!r} keeps change data, in which a key changes once in a commit; "
            "leave the option out",
        )
    check_same(options, table)


def check_same(options: WriteOptions, table: TableProperties) -> None:
    """Raise one `OptionError` for all options that differ from the table.

    As `check_agreement`, but for the merge hook, which only those need who merge rows.
    """
    problems = [
        OptionError(
            key,
            _show(given),
            f"table {table.name!r} has {repr(_show(stored)) if _show(stored) else 'none'}; "
            "leave the option out or write to another table",
        )
        for key, given, stored in _pairs(options, table)
        if given is not None and stored is not None and given != stored
    ]
    if problems:
        raise OptionError.of(problems)


def _pairs(options: WriteOptions, table: TableProperties) -> Iterator[tuple[str, object, object]]:
    fixed: tuple[tuple[Option[Any], object, object], ...] = (
        (OperationOptions.table_name, options.table_name, table.name),
        (OperationOptions.database_name, options.database_name, table.database),
        (OperationOptions.table_type, options.table_type, table.table_type),
        (FileOptions.table_version, options.table_version, table.version),
        (FileOptions.timeline_layout, options.timeline_layout, table.layout_version),
        (TableOptions.record_key_fields, options.record_key_fields, table.record_key_fields),
        (TableOptions.key_generator, options.key_generator, table.key_generator),
        (TableOptions.hive_style, options.hive_style, table.hive_style),
        (TableOptions.url_encode, options.url_encode, table.url_encode),
        (
            TableOptions.populate_meta_fields,
            options.populate_meta_fields,
            table.populate_meta_fields,
        ),
        (IndexOptions.num_buckets, options.num_buckets, table.num_buckets),
        (ChangeOptions.enabled, options.changes.enabled, table.supplemental_logging is not None),
        (
            ChangeOptions.logging,
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
        yield IndexOptions.index_type.key, options.index_type, table.index_type
    if options.bucket_hash_fields is not None and table.bucket_hash_fields is not None:
        yield (
            IndexOptions.bucket_hash_fields.key,
            sorted(options.bucket_hash_fields),
            sorted(table.bucket_hash_fields),
        )
    # A table ordered by commit time stores no ordering field, so giving one contradicts nothing.
    if table.ordering_fields or table.order is not MergeMode.COMMIT_TIME_ORDERING:
        yield TableOptions.ordering_fields.key, options.ordering_fields, table.ordering_fields
    prefixed = table.complex_key_prefixed
    if not table.populate_meta_fields:  # keys are made anew at each read, always alike
        prefixed = table.makes_prefixed_keys
        consistent = options.consistent_logical_timestamp
        yield TableOptions.consistent_logical_timestamp.key, consistent, False
    if prefixed is not None:
        given_encoding = options.complex_keygen_new_encoding
        yield TableOptions.complex_keygen_new_encoding.key, given_encoding, not prefixed
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
    yield TableOptions.merge_mode.key, mode, stored_mode
    if mode is MergeMode.CUSTOM:
        yield (
            TableOptions.payload_class.key,
            options.payload_class,
            update.payload if update else "",
        )
    stored = update.mode if update else ""
    yield TableOptions.partial_update_mode.key, options.partial_update_mode, stored
    marked = update is not None and update.mode is PartialUpdateMode.FILL_UNAVAILABLE
    marker = update.marker if update and marked else ""
    yield TableOptions.unavailable_value.key, options.unavailable_value, marker
    name, text = table.delete_marker or ("", "")
    yield TableOptions.delete_field.key, options.delete_field, name
    yield TableOptions.delete_marker.key, options.delete_marker, text


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
            TableOptions.partition_fields.key,
            tuple(_canonical(field) for field in fields),
            tuple(_canonical(field) for field in table.partition_field_specs),
        )
    else:
        yield TableOptions.partition_fields.key, partition_names(fields), table.partition_fields


def _canonical(spec: str) -> str:
    name, _, kind = spec.partition(":")
    return f"{name}:{kind.upper()}"


def _show(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return ",".join(value)
    return str(getattr(value, "value", value))

"""Which key generator fits which fields, by the rules of Hudi's own key generators."""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.enums import IndexType, KeyGeneratorType
from hoodie_ds.config.table_options import TableOptions
from hoodie_ds.errors import OptionError

_SPEC: Final = re.compile(r"[^:]+:(SIMPLE|TIMESTAMP)", re.IGNORECASE)


_VIRTUAL: Final = (
    KeyGeneratorType.SIMPLE,
    KeyGeneratorType.NON_PARTITION,
    KeyGeneratorType.COMPLEX,
)


def partition_names(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Return the column names of partition fields, ``column`` or ``column:TYPE``."""
    return tuple(field.partition(":")[0] for field in fields)


def lacking_stored_keys(
    generator: KeyGeneratorType, record_keys: tuple[str, ...], index: IndexType | None
) -> tuple[str, ...]:
    """Return what a table needs Hudi's meta columns for, each in a few words.

    Hudi refuses to compute keys by other key generators, and keys that no column has. Its bloom
    filters and record index are made of stored keys alone.
    """
    needing: list[str] = []
    if generator not in _VIRTUAL:
        names = ", ".join(kind.value for kind in _VIRTUAL)
        needing.append(f"the key generator {generator.value} (only with {names})")
    if not record_keys:
        needing.append("without record key fields")
    if index in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM):
        instead = index.value.replace("BLOOM", "SIMPLE")
        needing.append(f"the index {index.value} (take {instead} or BUCKET)")
    elif index is not None and index.is_record_index:
        simple = "SIMPLE" if index is IndexType.RECORD_LEVEL_INDEX else "GLOBAL_SIMPLE"
        needing.append(f"the index {index.value} (take {simple} or BUCKET)")
    return tuple(needing)


def infer_key_generator(
    record_keys: tuple[str, ...], partition_fields: tuple[str, ...]
) -> KeyGeneratorType:
    """Return the key generator that Hudi takes when the user names none.

    No partition field makes it NON_PARTITION, a field with a type CUSTOM, one partition field with
    at most one key field SIMPLE, and all else COMPLEX.
    """
    if not partition_fields:
        return KeyGeneratorType.NON_PARTITION
    if any(":" in field for field in partition_fields):
        return KeyGeneratorType.CUSTOM
    if len(partition_fields) == 1 and len(record_keys) <= 1:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX


def check_key_generation(
    generator: KeyGeneratorType | None,
    record_keys: tuple[str, ...] | None,
    partition_fields: tuple[str, ...] | None,
) -> None:
    """Raise `OptionError` if a key generator cannot work with the fields; ``None`` is unknown."""
    typed = [field for field in partition_fields or () if ":" in field]
    if generator is None:
        generator = KeyGeneratorType.CUSTOM if typed else None
    if partition_fields is not None and generator is not None:
        _check_partition_fields(generator, partition_fields)
    single_key = generator in (KeyGeneratorType.SIMPLE, KeyGeneratorType.TIMESTAMP)
    if single_key and record_keys is not None and len(record_keys) > 1:
        raise OptionError(
            TableOptions.record_key_fields.key,
            ",".join(record_keys),
            f"the {generator.value if generator else ''} key generator takes one field; "
            "use COMPLEX or CUSTOM",
        )


def _check_partition_fields(generator: KeyGeneratorType, fields: tuple[str, ...]) -> None:
    match generator:
        case KeyGeneratorType.CUSTOM:
            usable = all(_SPEC.fullmatch(field) for field in fields)
            remedy = "the CUSTOM key generator takes column:SIMPLE or column:TIMESTAMP"
        case KeyGeneratorType.NON_PARTITION:
            usable, remedy = not fields, "the NON_PARTITION key generator takes none"
        case KeyGeneratorType.COMPLEX:
            usable = not any(":" in field for field in fields)
            remedy = "column:TYPE is for the CUSTOM key generator"
        case KeyGeneratorType.SIMPLE | KeyGeneratorType.TIMESTAMP:
            usable = len(fields) == 1 and ":" not in fields[0]
            remedy = f"the {generator.value} key generator takes one column"
    if not usable:
        raise OptionError(TableOptions.partition_fields.key, ",".join(fields), remedy)

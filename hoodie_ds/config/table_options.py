"""Keys, partitions and merges of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from hoodie_ds.config.enums import (
    KeyGeneratorType,
    MergeMode,
    PartialUpdateMode,
    SupplementalLogging,
)
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import BOOLEAN, NAMES, ONE_OR_MORE_NAMES, TEXT, Kind, Option, choice
from hoodie_ds.errors import OptionError

if TYPE_CHECKING:
    from typing import Self

T = TypeVar("T")

_PAYLOAD_PACKAGE: Final = "org.apache.hudi.common.model."

OVERWRITE_PAYLOAD: Final = _PAYLOAD_PACKAGE + "OverwriteWithLatestAvroPayload"
"""Java payload class that stands for commit-time ordering."""

DEFAULT_PAYLOAD: Final = _PAYLOAD_PACKAGE + "DefaultHoodieRecordPayload"
"""Java payload class that stands for event-time ordering."""

PARTIAL_UPDATE_PAYLOAD: Final = _PAYLOAD_PACKAGE + "PartialUpdateAvroPayload"
"""Java payload class that fills nulls of the row with the greater ordering value."""

NON_DEFAULTS_PAYLOAD: Final = _PAYLOAD_PACKAGE + "OverwriteNonDefaultsWithLatestAvroPayload"
"""Java payload class that fills nulls of the later row."""

PAYLOAD_MODES: Final = {
    PARTIAL_UPDATE_PAYLOAD: MergeMode.CUSTOM,
    NON_DEFAULTS_PAYLOAD: MergeMode.CUSTOM,
    OVERWRITE_PAYLOAD: MergeMode.COMMIT_TIME_ORDERING,
    DEFAULT_PAYLOAD: MergeMode.EVENT_TIME_ORDERING,
    _PAYLOAD_PACKAGE + "EventTimeAvroPayload": MergeMode.EVENT_TIME_ORDERING,
}
"""What the payload classes of the Hudi tech spec mean; any other is a custom merge."""

_TYPES: Final = {
    kind.value + flavour: kind for kind in KeyGeneratorType for flavour in ("", "_AVRO")
}

_IMPORT_PATH: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

_HOOK: Final[Kind[str | Callable[..., object]]] = Kind(
    "an import path, package.module:callable",
    lambda text: text if _IMPORT_PATH.fullmatch(text) else None,
)

KEYGEN_PREFIX: Final = "hoodie.keygen.timebased."
"""Options, and table properties, of the TIMESTAMP and CUSTOM key generators."""

OLD_KEYGEN_PREFIX: Final = "hoodie.deltastreamer.keygen.timebased."
"""The name of `KEYGEN_PREFIX` before Hudi 0.14."""

KEYGEN_SUFFIXES: Final = (
    "timestamp.type",
    "timestamp.scalar.time.unit",
    "input.dateformat",
    "input.dateformat.list.delimiter.regex",
    "input.timezone",
    "output.dateformat",
    "output.timezone",
    "timezone",
)
"""What may follow `KEYGEN_PREFIX`."""


@dataclass(frozen=True, kw_only=True)
class ChangeOptions(OptionGroup):
    """What a new table keeps of its changes (change data capture)."""

    enabled: Option[bool | None] = Option(
        "hoodie.table.cdc.enabled",
        BOOLEAN,
        "Whether the table keeps change data: files with what a commit changed, next to the base "
        "files that it rewrites, for queries of changes; fixed at creation.",
        aliases=("cdc.enabled",),
    )
    logging: Option[SupplementalLogging | None] = Option(
        "hoodie.table.cdc.supplemental.logging.mode",
        choice(SupplementalLogging),
        "What is kept of a change: its operation and key, also the row before it, or the rows "
        "before and after it (the default); fixed at creation.",
        aliases=("cdc.supplemental.logging.mode",),
    )


@dataclass(frozen=True, kw_only=True)
class TableOptions(OptionGroup):
    """What a new table is to be; an existing one is not contradicted."""

    record_key_fields: Option[tuple[str, ...] | None] = Option(
        "hoodie.datasource.write.recordkey.field",
        ONE_OR_MORE_NAMES,
        "Columns that identify a row; without them rows are only appended.",
        aliases=("hoodie.table.recordkey.fields",),
    )
    partition_fields: Option[tuple[str, ...] | None] = Option(
        "hoodie.datasource.write.partitionpath.field",
        NAMES,
        "Columns that make the partition path; field:SIMPLE or field:TIMESTAMP with CUSTOM.",
        aliases=("hoodie.table.partition.fields",),
    )
    ordering_fields: Option[tuple[str, ...] | None] = Option(
        "hoodie.datasource.write.precombine.field",
        NAMES,
        "Columns that decide which of two rows with one key is newer.",
        aliases=(
            "hoodie.table.ordering.fields",
            "hoodie.table.precombine.field",
            "ordering.fields",
            "precombine.field",
            "hoodie.payload.ordering.field",
            "write.precombine.field",
        ),
    )
    key_generator: Option[KeyGeneratorType | None] = Option(
        "hoodie.datasource.write.keygenerator.type",
        Kind(
            "one of " + ", ".join(kind.value for kind in KeyGeneratorType),
            lambda text: _TYPES.get(text.upper()),
        ),
        "How keys and partition paths are made; inferred from the fields for a new table.",
        aliases=("hoodie.table.keygenerator.type",),
    )
    key_generator_class: ClassVar[Option[KeyGeneratorType | None]] = Option(
        "hoodie.datasource.write.keygenerator.class",
        Kind(
            "one of " + ", ".join(kind.java_class for kind in KeyGeneratorType),
            KeyGeneratorType.from_java_class,
        ),
        "The key generator by its Java class; only Hudi's own classes have a counterpart here.",
        aliases=("hoodie.table.keygenerator.class",),
    )
    key_generator_options: Mapping[str, str] = field(default_factory=dict)
    """``hoodie.keygen.timebased.*`` under their full names."""
    consistent_logical_timestamp: Option[bool | None] = Option(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        BOOLEAN,
        "Timestamps in keys as formatted strings rather than as the stored number.",
    )
    complex_keygen_new_encoding: Option[bool | None] = Option(
        "hoodie.write.complex.keygen.new.encoding",
        BOOLEAN,
        "COMPLEX keys of one field as the bare value (true) or as field:value (false).",
    )
    hive_style: Option[bool | None] = Option(
        "hoodie.datasource.write.hive_style_partitioning",
        BOOLEAN,
        "Partition folders named column=value; false for a new table.",
    )
    url_encode: Option[bool | None] = Option(
        "hoodie.datasource.write.partitionpath.urlencode",
        BOOLEAN,
        "Percent-encode partition values in paths; false for a new table.",
    )
    populate_meta_fields: Option[bool | None] = Option(
        "hoodie.populate.meta.fields",
        BOOLEAN,
        "Fill in Hudi's five meta columns in every row; true for a new table. Without, record "
        "keys are computed from the rows (virtual keys).",
    )
    merge_mode: Option[MergeMode | None] = Option(
        "hoodie.write.record.merge.mode",
        choice(MergeMode),
        "Which of two rows with one key survives; for a new table by a merge hook if there is "
        "one, by event time if it has ordering fields, else by commit time.",
        aliases=("hoodie.record.merge.mode",),
    )
    merge_hook: Option[str | Callable[..., object] | None] = Option(
        "hoodie.py.merge.hook",
        _HOOK,
        "The function that merges rows with one key, with merge mode CUSTOM; a table's own "
        "properties never name the code that runs, so reads of merge-on-read tables need it too.",
    )
    payload_class: Option[str | None] = Option(
        "hoodie.datasource.write.payload.class",
        Kind(
            f"one of {', '.join(PAYLOAD_MODES)} (other payloads are not supported yet)",
            lambda text: text if text in PAYLOAD_MODES else None,
        ),
        "The older name of a merge mode; for CUSTOM one of the two payloads of partial updates.",
        aliases=(
            "hoodie.compaction.payload.class",
            "hoodie.table.compaction.payload.class",
            "payload.class",
            "write.payload.class",
        ),
    )
    partial_update_mode: Option[PartialUpdateMode | None] = Option(
        "hoodie.table.partial.update.mode",
        choice(PartialUpdateMode),
        "What a row keeps of the row it replaces: the values where it has null (IGNORE_DEFAULTS) "
        "or the marker (FILL_UNAVAILABLE); fixed at creation.",
    )
    unavailable_value: Option[str | None] = Option(
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",
        TEXT,
        "The marker of FILL_UNAVAILABLE, in columns of strings and bytes; Debezium's "
        "__debezium_unavailable_value for a new table.",
        aliases=("hoodie.write.partial.update.unavailable.value",),
    )
    delete_field: Option[str | None] = Option(
        "hoodie.payload.delete.field",
        TEXT,
        "A column that marks deletes: a row with hoodie.payload.delete.marker there deletes its "
        "key; fixed at creation.",
        aliases=("hoodie.record.merge.property.hoodie.payload.delete.field",),
    )
    delete_marker: Option[str | None] = Option(
        "hoodie.payload.delete.marker",
        TEXT,
        "The value that marks deletes in the column hoodie.payload.delete.field.",
        aliases=("hoodie.record.merge.property.hoodie.payload.delete.marker",),
    )
    changes: ChangeOptions = field(default_factory=ChangeOptions)

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        options = super().of(given)
        of_class = given.get(cls.key_generator_class)
        of_payload = PAYLOAD_MODES.get(options.payload_class or "")
        return options.with_values(
            key_generator=_either(given, cls.key_generator, cls.key_generator_class, of_class),
            key_generator_options=_key_generator_options(given),
            merge_mode=_either(given, cls.merge_mode, cls.payload_class, of_payload),
        )


def _either(
    given: GivenOptions, option: Option[T | None], other: Option[Any], other_value: T | None
) -> T | None:
    """Return the value of two options that mean one thing under different values."""
    value = given.get(option)
    if value is not None and other_value not in (None, value):
        given.refuse_value(other, f"contradicts {given.written(option)[0][0]}; give one")
    return other_value if value is None else value


def _key_generator_options(given: GivenOptions) -> dict[str, str]:
    found: dict[str, str] = {}
    for prefix in (KEYGEN_PREFIX, OLD_KEYGEN_PREFIX):
        for suffix, text in given.with_prefix(prefix):
            key = KEYGEN_PREFIX + suffix.lower()
            if found.setdefault(key, text) != text:
                given.refuse(OptionError(prefix + suffix, text, f"contradicts {key}; give one"))
    return found


def hook_name(hook: str | Callable[..., object]) -> str:
    """Return ``package.module:callable`` of a merge hook, as far as it has such a name."""
    if isinstance(hook, str):
        return hook
    named = hook if hasattr(hook, "__qualname__") else type(hook)
    return f"{named.__module__}:{named.__qualname__}"

"""What ``.hoodie/hoodie.properties`` says about a table.

Invariant: the typed fields are a reading of `TableProperties.raw`, which keeps every key of the
file, also those unknown here; so a changed file never loses what another engine wrote.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from hoodie_ds.config.enums import (
    IndexType,
    KeyGeneratorType,
    MergeMode,
    SupplementalLogging,
    TableType,
)
from hoodie_ds.config.key_generation import (
    infer_key_generator,
    lacking_stored_keys,
    partition_names,
)
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.java_properties import (
    format_properties,
    iso_time,
    java_date,
    parse_properties,
)
from hoodie_ds.config.properties.new_table import new_table_entries
from hoodie_ds.config.properties.partial_updates import PartialUpdate, read_partial_update
from hoodie_ds.config.properties.property_reader import PropertyReader
from hoodie_ds.config.table_options import KEYGEN_PREFIX, OLD_KEYGEN_PREFIX, PAYLOAD_MODES
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError, OptionError, UnsupportedTableError

_PREFIXED_SINCE: Final = 9
"""Table version from which on a COMPLEX key of one field is always ``field:value``."""
_LAYOUTS: Final = {6: 1, 8: 2, 9: 2}
_KEEPING: Final = (
    "; hoodie.write.table.version=9 and hoodie.write.auto.upgrade=false keep JVM writers at 9"
)
"""Version of the timeline layout that tables of a version have."""


BLOOM_FILTERS: Final = "bloom_filters"
RECORD_INDEX: Final = "record_index"
SECONDARY_INDEX: Final = "secondary_index_"
"""Beginning of the names of partitions of a metadata table that index the values of a column."""
EXPRESSION_INDEX: Final = "expr_index_"
"""The same of those that index the values of an expression."""
_KEPT: Final = frozenset({"files", "column_stats", "partition_stats", BLOOM_FILTERS, RECORD_INDEX})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperties:
    """The properties of one table.

    Parameters
    ----------
    partition_fields : tuple of str
        Column names only.
    partition_field_specs : tuple of str
        ``column:SIMPLE`` or ``column:TIMESTAMP`` per partition field of a CUSTOM key generator;
        empty for others, and where the table does not say.
    partial_update : PartialUpdate or None
        How rows are filled from one another; None where they are not.
    supplemental_logging : SupplementalLogging or None
        What the table logs of changes; None where change data capture is off.
    archive_folder : str
        Relative to ``.hoodie``.
    timeline_in_utc : bool
        Whether instant times are in UTC; a table that does not say has them in local time.
    metadata_partitions : tuple of str
        Usable partitions of the metadata table; empty if there is none.
    key_generator_options : mapping of str to str
        ``hoodie.keygen.timebased.*`` under their full names.
    num_buckets, bucket_rules, index_type, bucket_hash_fields
        Written by this library at creation; ``None`` in tables of others.
    complex_key_prefixed : bool
        Whether a COMPLEX key of one field is ``field:value``; ``None`` where the table does not
        say, and its files have to be looked at.
    raw : mapping of str to str
        Every key of the file.
    """

    name: str
    database: str | None
    table_type: TableType
    version: int
    layout_version: int
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    partition_field_specs: tuple[str, ...]
    key_generator: KeyGeneratorType
    ordering_fields: tuple[str, ...]
    merge_mode: MergeMode
    partial_update: PartialUpdate | None
    hive_style: bool
    url_encode: bool
    drop_partition_columns: bool
    populate_meta_fields: bool
    supplemental_logging: SupplementalLogging | None
    archive_folder: str
    timeline_in_utc: bool
    metadata_partitions: tuple[str, ...]
    base_file_format: str
    key_generator_options: Mapping[str, str]
    num_buckets: int | None
    bucket_rules: str | None
    index_type: IndexType | None
    bucket_hash_fields: tuple[str, ...] | None
    complex_key_prefixed: bool | None
    raw: Mapping[str, str] = field(repr=False)

    @classmethod
    def parse(cls, text: bytes | str, path: str) -> TableProperties:
        """Read a ``hoodie.properties`` of any table version.

        Parameters
        ----------
        text : bytes or str
            Content of the file.
        path : str
            Where it is from, for messages.

        Returns
        -------
        TableProperties
            Also of a table that this release cannot use: see `check_readable`.

        Raises
        ------
        CorruptFileError
            It is no such file: a mandatory key is missing, a value is malformed, or the checksum
            belongs to another name.
        UnsupportedTableError
            It names a key generator, index or mode of partial updates that is unknown here.
        """
        return _parsed(text, path)

    @classmethod
    def create(cls, options: WriteOptions) -> TableProperties:
        """Return the properties of a new table.

        Parameters
        ----------
        options : WriteOptions
            What the user said; Hudi's rules and this library's defaults decide the rest.

        Returns
        -------
        TableProperties

        Raises
        ------
        OptionError
            The name is missing, or the fields do not fit the key generator or merge mode.
        """
        return _read(new_table_entries(options), keys.FILE_NAME)

    def format(self, now_ms: int, comment: str = "Properties saved on") -> bytes:
        """Return the file's content, with a fresh checksum and all keys of `raw`.

        Parameters
        ----------
        now_ms : int
            Milliseconds since the Unix epoch, for the comment lines.
        comment : str
            Precedes the time; Hudi writes ``Updated at`` when it changes a file.
        """
        return properties_file(self.raw, now_ms, comment)

    def with_changes(self, changes: Mapping[str, str]) -> TableProperties:
        """Return the properties with some keys of the file set anew."""
        raw = {key: value for key, value in self.raw.items() if key != keys.CHECKSUM}
        return _read({**raw, **changes}, keys.FILE_NAME)

    def without(self, removed: Collection[str]) -> TableProperties:
        """Return the properties without some keys of the file."""
        kept = {key: value for key, value in self.raw.items() if key not in removed}
        return _read(kept, keys.FILE_NAME)

    def same_table(self, other: TableProperties) -> bool:
        """Whether both say the same, whenever and with whatever first schema they were written."""
        return not self.differing_keys(other)

    def differing_keys(self, other: TableProperties) -> list[str]:
        """Keys of which two tables do not say the same, but for what changes with every file."""
        differing = {key for key, _ in self.raw.items() ^ other.raw.items()}
        return sorted(differing - {keys.CHECKSUM, keys.CREATE_SCHEMA})

    def check_version(self) -> None:
        """Raise `UnsupportedTableError` if this release does not know where the timeline is."""
        reasons = {
            f"table version {self.version} (this release handles {_named(_LAYOUTS)}{_KEEPING})": (
                self.version not in _LAYOUTS
            ),
            f"timeline layout version {self.layout_version} (version {self.version} has "
            f"{_LAYOUTS.get(self.version)})": self.layout_version != _LAYOUTS.get(self.version),
            f"a timeline in {self._timeline_folder}": (
                self.layout_version != 1 and self._timeline_folder != "timeline/history"
            ),
            f"table format {self._format}": self._format != "native",
        }
        self._refuse(reasons, "read")

    def check_readable(self) -> None:
        """Raise `UnsupportedTableError` if this release cannot read the table rightly."""
        self.check_version()
        reasons = {
            f"base file format {self.base_file_format}": self.base_file_format != "PARQUET",
            "partition columns left out of the files": self.drop_partition_columns,
            "bootstrapped base files": any(self.raw.get(key) for key in keys.BOOTSTRAP),
        }
        self._refuse(reasons, "read")

    def check_writable(self) -> None:
        """Raise `UnsupportedTableError` if this release cannot write to the table rightly."""
        self.check_readable()
        reasons = {
            **{f"virtual keys and {what}": True for what in self._lacking_stored_keys()},
        }
        self._refuse(reasons, "written to")

    def _lacking_stored_keys(self) -> tuple[str, ...]:
        """What there is that does without stored keys neither here nor in Hudi."""
        if self.populate_meta_fields:
            return ()
        return lacking_stored_keys(self.key_generator, self.record_key_fields, self.index_type)

    @property
    def makes_prefixed_keys(self) -> bool:
        """Whether COMPLEX keys of one field that no file holds are made as ``field:value``.

        By the releases that make tables of the version, where the table itself does not say.
        """
        prefixed = self.complex_key_prefixed
        return self.version >= _PREFIXED_SINCE if prefixed is None else prefixed

    @property
    def _timeline_folder(self) -> str:
        """Where the archive lies, below ``.hoodie``; the timeline itself is the folder above."""
        path = self.raw.get(keys.TIMELINE_PATH) or "timeline"
        return f"{path}/{self.raw.get(keys.HISTORY_PATH) or 'history'}"

    @property
    def _format(self) -> str:
        return self.raw.get(keys.FORMAT, "").strip().lower() or "native"

    @property
    def delete_marker(self) -> tuple[str, str] | None:
        """A column, and the text in it that makes a row a delete; None without one.

        Tables of Database Migration Service have one in version 9, and any table that was made so.
        """
        name, marker = self.raw.get(keys.DELETE_FIELD), self.raw.get(keys.DELETE_MARKER)
        return (name, marker) if name and marker else None

    @property
    def order(self) -> MergeMode:
        """Which of two rows prevails, whether or not it is filled from the other."""
        return self.merge_mode if self.partial_update is None else self.partial_update.order

    def check_merge_hook(self, hook: object) -> None:
        """Raise `OptionError` if rows are to be merged and a hook is missing, or out of place.

        Parameters
        ----------
        hook : object
            What the user gave; None if nothing.
        """
        custom = self.order is MergeMode.CUSTOM
        if custom and hook is None:
            rule = self.raw.get(keys.MERGE_HOOK) or self.raw.get(keys.PAYLOAD_CLASS)
            raise OptionError(
                keys.MERGE_HOOK,
                None,
                f"table {self.name!r} merges rows by a rule of its own ({rule or 'not named'}); "
                "name the Python function that implements it, package.module:callable",
            )
        if not custom and hook is not None:
            rule = self.partial_update.name if self.partial_update else self.merge_mode.value
            raise OptionError(
                keys.MERGE_HOOK,
                hook,
                f"table {self.name!r} merges rows by {rule}; leave the hook out",
            )

    def _refuse(self, reasons: Mapping[str, bool], verb: str) -> None:
        for reason, holds in reasons.items():
            if holds:
                raise UnsupportedTableError(
                    f"table {self.name!r} cannot be {verb} by this release: it has {reason}; "
                    "use Apache Hudi on the JVM for it"
                )


def _named(versions: Collection[int]) -> str:
    *others, last = map(str, versions)
    return f"{', '.join(others)} and {last}"


@lru_cache(maxsize=16)
def _parsed(text: bytes | str, path: str) -> TableProperties:
    return _read(parse_properties(text, path), path)


def _read(raw: Mapping[str, str], path: str) -> TableProperties:
    """Return the typed reading of a file's entries."""
    reader = PropertyReader(raw, path)
    name = reader.text(keys.NAME)
    database = raw.get(keys.DATABASE)
    _check_checksum(raw, path, database, name)
    version = reader.integer(keys.VERSION)
    record_keys = reader.names(keys.RECORD_KEYS)
    ordering = reader.names(keys.ORDERING_FIELDS) or reader.names(keys.PRECOMBINE_FIELD)
    merge_mode = _merge_mode(reader, ordering)
    partition = reader.names(keys.PARTITION_FIELDS)
    specs = _typed(partition) or _typed(reader.names(keys.PARTITION_SPECS))
    return TableProperties(
        name=name,
        database=database,
        table_type=reader.member(keys.TYPE, TableType),
        version=version,
        layout_version=reader.integer(keys.LAYOUT, default=1 if version < 8 else 2),
        record_key_fields=record_keys,
        partition_fields=partition_names(partition),
        partition_field_specs=specs,
        key_generator=reader.key_generator(infer_key_generator(record_keys, specs or partition)),
        ordering_fields=ordering,
        merge_mode=merge_mode,
        partial_update=read_partial_update(reader, merge_mode, ordering),
        hive_style=reader.boolean(keys.HIVE_STYLE, default=False),
        url_encode=reader.boolean(keys.URL_ENCODE, default=False),
        drop_partition_columns=reader.boolean(keys.DROP_PARTITION_COLUMNS, default=False),
        populate_meta_fields=reader.boolean(keys.POPULATE_META_FIELDS, default=True),
        supplemental_logging=_logging(reader),
        archive_folder=raw.get(keys.ARCHIVE_FOLDER) or "archived",
        timeline_in_utc=raw.get(keys.TIMEZONE) == "UTC",
        metadata_partitions=reader.names(keys.METADATA_PARTITIONS)
        + reader.names(keys.METADATA_PARTITIONS_INFLIGHT),
        base_file_format=raw.get(keys.BASE_FORMAT, "PARQUET").upper(),
        key_generator_options=_key_generator_options(raw),
        num_buckets=reader.integer(keys.NUM_BUCKETS) if keys.NUM_BUCKETS in raw else None,
        bucket_rules=raw.get(keys.PARTITION_BUCKETS),
        index_type=reader.member(keys.INDEX_TYPE, IndexType) if keys.INDEX_TYPE in raw else None,
        bucket_hash_fields=reader.names(keys.HASH_FIELDS) or None,
        complex_key_prefixed=keys.COMPLEX_ENCODINGS.get(raw.get(keys.COMPLEX_ENCODING, "").upper()),
        raw=dict(raw),
    )


def _logging(reader: PropertyReader) -> SupplementalLogging | None:
    if not reader.boolean(keys.CDC_ENABLED, default=False):
        return None
    if not reader.raw.get(keys.CDC_LOGGING):
        return SupplementalLogging.DATA_BEFORE_AFTER
    return reader.member(keys.CDC_LOGGING, SupplementalLogging)


def _typed(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields if they carry types, as Hudi 1.x stores them, else none."""
    return fields if any(":" in name for name in fields) else ()


def _merge_mode(reader: PropertyReader, ordering: tuple[str, ...]) -> MergeMode:
    """Return what decides between two rows, by the rules for tables of version 6.

    An explicit mode comes first, then the payload class, then whether there is an ordering field.
    A merger that is neither of Hudi's own two makes the merge a custom one.
    """
    raw = reader.raw
    if keys.MERGE_MODE in raw:
        return reader.member(keys.MERGE_MODE, MergeMode)
    payload = raw.get(keys.PAYLOAD_CLASS)
    if payload:
        return PAYLOAD_MODES.get(payload.strip(), MergeMode.CUSTOM)
    strategy = raw.get(keys.MERGER_STRATEGY) or raw.get(keys.MERGE_STRATEGY_ID)
    if strategy and strategy.strip() not in keys.STANDARD_STRATEGIES:
        return MergeMode.CUSTOM
    return MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING


def _key_generator_options(raw: Mapping[str, str]) -> dict[str, str]:
    return {
        KEYGEN_PREFIX + key[len(prefix) :]: value
        for prefix in (OLD_KEYGEN_PREFIX, KEYGEN_PREFIX)
        for key, value in raw.items()
        if key.startswith(prefix)
    }


def properties_file(
    entries: Mapping[str, str], now_ms: int, comment: str = "Properties saved on"
) -> bytes:
    """Return the file of a table's properties; see `TableProperties.format`."""
    checksum = _checksum(entries.get(keys.DATABASE), entries[keys.NAME])
    comments = (f"{comment} {iso_time(now_ms)}", java_date(now_ms))
    return format_properties({**entries, keys.CHECKSUM: str(checksum)}, comments)


def _checksum(database: str | None, name: str) -> int:
    """Return Hudi's checksum of a table's name: CRC-32 of ``database.name`` in UTF-8."""
    return zlib.crc32(f"{database or ''}.{name}".encode())


def _check_checksum(raw: Mapping[str, str], path: str, database: str | None, name: str) -> None:
    stored = raw.get(keys.CHECKSUM)
    if stored is not None and stored.strip() != str(_checksum(database, name)):
        raise CorruptFileError(
            f"{path}: {keys.CHECKSUM} = {stored[:50]!r} does not belong to table {name!r} "
            f"of database {database!r}",
            f"restore the file from {path}.backup if there is one",
        )


def is_kept(properties: TableProperties, without: Collection[str] = ()) -> bool:
    """Whether a table has a metadata table that all writes here keep up to date.

    Or that they would keep, `without` some of its partitions.
    """
    partitions = [name for name in properties.metadata_partitions if name not in without]
    is_built = not properties.raw.get(keys.METADATA_PARTITIONS_INFLIGHT)
    return bool(partitions) and all(map(is_kept_partition, partitions)) and is_built


def expression_indexes(properties: TableProperties) -> frozenset[str]:
    """Return the partitions of a metadata table that are indexes of expressions."""
    names = properties.metadata_partitions
    return frozenset(name for name in names if name.startswith(EXPRESSION_INDEX))


def is_kept_partition(name: str) -> bool:
    """Whether writes here keep a partition of a metadata table up to date."""
    return name in _KEPT or name.startswith(SECONDARY_INDEX)

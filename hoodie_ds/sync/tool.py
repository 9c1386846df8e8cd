"""The sync of a table into a catalog: computes the difference, applies it, records the sync point.

It makes the same entries as ``HiveSyncTool`` of Hudi 1.2. Its cost follows the commits since the
last sync, whose sync point is in the properties of the catalog's table. Partitions are synced
before the sync point is recorded, so the next sync completes an interrupted one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.config.enums import SyncedTables, TableType
from hoodie_ds.errors import CatalogError
from hoodie_ds.formats.avro.tree import parse_avro
from hoodie_ds.sync.catalog import (
    Catalog,
    CatalogColumn,
    CatalogPartition,
    CatalogTable,
    is_same_place,
)
from hoodie_ds.sync.columns import columns_of, field_comments, hive_type, spark_properties
from hoodie_ds.sync.partitions import (
    Touched,
    all_partitions,
    chosen_extractor,
    commits_since,
    partition_values,
    touched_partitions,
)
from hoodie_ds.sync.results import CatalogSync, TableSync
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import schema_instant
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import commit_path
from hoodie_ds.timeline.timeline import Timeline

LAST_COMMIT: Final = "last_commit_time_sync"
LAST_COMPLETION: Final = "last_commit_completion_time_sync"
PENDING: Final = "hoodie.py.sync.pending"
"""Property of this library: the writes that were pending at the last sync (layout 1)."""
WRITER: Final = "hudi_writer_version"

_SYNC_POINT: Final = (LAST_COMMIT, LAST_COMPLETION, PENDING)
_FORMATS: Final = {
    False: "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    True: "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat",
}
_OUTPUT_FORMAT: Final = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_SCHEMA_PART: Final = "spark.sql.sources.schema.part."


@dataclass(frozen=True, slots=True)
class View:
    """One of the tables that a Hudi table has in a catalog."""

    name: str
    all_rows: bool  # whether its readers merge log files
    base_files: bool  # whether Spark's readers read base files alone


def views_of(name: str, table_type: TableType, options: CatalogOptions) -> list[View]:
    """Return the catalog's tables of a Hudi table, as ``HiveSyncTool.doSync`` does."""
    if table_type is TableType.COPY_ON_WRITE:
        return [View(name, all_rows=False, base_files=False)]
    if options.tables is SyncedTables.RO:
        return [View(name, all_rows=False, base_files=True)]
    if options.tables is SyncedTables.RT:
        return [View(name, all_rows=True, base_files=False)]
    optimised = name if options.skip_ro_suffix else f"{name}_ro"
    views = [
        View(optimised, all_rows=False, base_files=True),
        View(f"{name}_rt", all_rows=True, base_files=False),
    ]
    if options.with_table_name and optimised != name:
        views.append(View(name, all_rows=True, base_files=False))
    return views


@dataclass(frozen=True)
class SyncTool:
    """Syncs one table into one catalog."""

    table: Table
    timeline: Timeline
    options: CatalogOptions
    catalog: Catalog

    def sync(self, *, dry: bool = False) -> CatalogSync:
        """Bring the catalog's tables up to date."""
        if schema_instant(self.table, self.timeline) is None:
            return CatalogSync(self.options.database, ())
        has_database = self.catalog.has_database()
        if not has_database and not self.options.creates_database:
            raise CatalogError(
                f"the catalog has no database {self.options.database!r}; create it, or omit "
                "hoodie.datasource.hive_sync.auto_create_database"
            )
        if not (has_database or dry):
            self.catalog.create_database()
        name = self.options.table or self.table.properties.name
        views = views_of(name, self.table.properties.table_type, self.options)
        done = (self._sync_view(view, has_database, dry) for view in views)
        return CatalogSync(self.options.database, tuple(one for one in done if one))

    def _sync_view(self, view: View, has_database: bool, dry: bool) -> TableSync:
        found = self.catalog.table(view.name) if has_database else None
        moved = found is not None and not is_same_place(found.location, self._base())
        known = None if moved else found
        commits = self._new_commits(known)
        if known is not None and commits == [] and self._is_current(known):
            return TableSync(view.name)
        wanted = self._wanted(view, known)
        touched = Touched(())
        if wanted.partition_keys:
            touched = (
                all_partitions(self.table, self.timeline)
                if commits is None
                else touched_partitions(self.table, self.timeline, commits)
            )
        changes = self._partition_changes(wanted, touched, exists=known is not None)
        result = TableSync(
            view.name,
            created=known is None,
            columns=_changed_columns(known, wanted),
            properties=known is not None and _differs(known, wanted),
            added=tuple(one.location for one in changes.added),
            changed=tuple(one.location for one in changes.changed),
            dropped=tuple(one.location for one in changes.dropped),
        )
        if not dry:
            if moved:
                self.catalog.drop_table(view.name)
            self._apply(known, wanted, changes, result)
        return result

    def _apply(
        self,
        known: CatalogTable | None,
        wanted: CatalogTable,
        changes: _PartitionChanges,
        result: TableSync,
    ) -> None:
        kept = {key: value for key, value in wanted.properties.items() if key not in _SYNC_POINT}
        recorded = replace(wanted, properties={**kept, **self._sync_point()})
        first = wanted if changes else recorded
        if known is None:
            self.catalog.create_table(first)
        elif result.columns or result.properties:
            self.catalog.change_table(first, columns_changed=bool(result.columns))
        elif not changes and not self.options.conditional:
            self.catalog.change_table(recorded, columns_changed=False)
        if changes:
            self.catalog.add_partitions(wanted, changes.added)
            self.catalog.change_partitions(wanted, changes.changed)
            self.catalog.drop_partitions(wanted, changes.dropped)
            self.catalog.change_table(recorded, columns_changed=False)

    def _base(self) -> str:
        return self.catalog.location(self.options.base_path or self.table.storage.root)

    def _new_commits(self, known: CatalogTable | None) -> list[Instant] | None:
        """Return the commits since the last sync; None to compare all partitions."""
        last = None if known is None else known.properties.get(LAST_COMMIT)
        if not self.options.incremental or not last or self.timeline.commit_at(last) is None:
            return None
        assert known is not None
        pending = frozenset(filter(None, known.properties.get(PENDING, "").split(",")))
        completed = "" if self.timeline.layout == 1 else known.properties.get(LAST_COMPLETION, "")
        return list(commits_since(self.timeline, last, completed, pending))

    def _is_current(self, known: CatalogTable) -> bool:
        point = self._sync_point()
        keys = (LAST_COMMIT, PENDING)
        return all(known.properties.get(key, "") == point.get(key, "") for key in keys)

    def _sync_point(self) -> dict[str, str]:
        """Return the properties that record up to which commit the catalog is synced."""
        latest = next(self.timeline.commits_backwards())
        note = {LAST_COMMIT: latest.time}
        if self.timeline.layout != 1:
            ends = (instant.completion_time for instant in self.timeline.commits)
            note[LAST_COMPLETION] = max(ends)
        elif pending := [one.time for one in self.timeline.pending if one.time < latest.time]:
            note[PENDING] = ",".join(pending)
        return note

    def _fields(self) -> tuple[str, ...]:
        given = self.options.partition_fields
        return self.table.properties.partition_fields if given is None else given

    def _wanted(self, view: View, known: CatalogTable | None) -> CatalogTable:
        """Return the catalog's table as it must be, without the sync point."""
        instant = schema_instant(self.table, self.timeline)
        assert instant is not None
        avro = file_changes(self.table.storage, instant).schema
        record = parse_avro(avro, commit_path(instant))
        columns = list(columns_of(record, meta=not self.options.omit_meta_fields))
        comments = {} if known is None else {one.name: one.comment for one in known.columns}
        if self.options.comments:
            comments |= {name.lower(): text for name, text in field_comments(avro).items()}
        types = {name: hive_type(node, timestamps=self.options.support_timestamp)
                 for name, node in columns}  # fmt: skip
        fields = self._fields()
        properties = {
            **({} if self.options.managed else {"EXTERNAL": "TRUE"}),
            **self.catalog.extra_properties,
            WRITER: "hoodie-ds",
            **dict(self.options.table_properties),
        }
        serde = {**dict(self.options.serde_properties), "serialization.format": "1"}
        serde["path"] = self._base()
        if self.options.as_datasource:
            properties |= spark_properties(columns, fields, self.options.schema_length)
            if self.options.spark_version:
                properties["spark.sql.create.version"] = self.options.spark_version
            serde["hoodie.query.as.ro.table"] = str(view.base_files).lower()
        return CatalogTable(
            name=view.name,
            location=self._base(),
            columns=tuple(
                CatalogColumn(name.lower(), types[name], comments.get(name.lower(), ""))
                for name, _ in columns
                if name not in fields
            ),
            partition_keys=tuple(
                CatalogColumn(name.lower(), types.get(name, "string")) for name in fields
            ),
            input_format=_FORMATS[view.all_rows],
            output_format=_OUTPUT_FORMAT,
            serde=_SERDE,
            serde_properties=serde,
            properties={**_kept(known), **properties},
        )

    def _partition_changes(
        self, wanted: CatalogTable, touched: Touched, *, exists: bool
    ) -> _PartitionChanges:
        fields = self._fields()
        how = chosen_extractor(self.options.extractor, fields, self.table.properties)

        def at(path: str) -> CatalogPartition:
            return CatalogPartition(
                partition_values(how, path, fields), f"{wanted.location.rstrip('/')}/{path}"
            )

        present = [at(path) for path in touched.present]
        gone = {one.values for one in map(at, touched.gone)} - {one.values for one in present}
        asked = None if touched.all_of_them else [*(one.values for one in present), *sorted(gone)]
        there = {}
        if exists and asked != []:
            there = {one.values: one for one in self.catalog.partitions(wanted, asked)}
        if touched.all_of_them:
            gone = there.keys() - {one.values for one in present}
        return _PartitionChanges(
            tuple(one for one in present if one.values not in there),
            tuple(
                one
                for one in present
                if one.values in there
                and not is_same_place(one.location, there[one.values].location)
            ),
            tuple(there[values] for values in sorted(gone) if values in there),
        )


@dataclass(frozen=True, slots=True)
class _PartitionChanges:
    """Changes of a table's partitions in a catalog; false if there are none."""

    added: tuple[CatalogPartition, ...] = ()
    changed: tuple[CatalogPartition, ...] = ()
    dropped: tuple[CatalogPartition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.dropped)


def _kept(known: CatalogTable | None) -> Mapping[str, str]:
    """Return the properties of the catalog's table that stay: all but parts of a schema."""
    if known is None:
        return {}
    properties = known.properties.items()
    return {key: value for key, value in properties if not key.startswith(_SCHEMA_PART)}


def _changed_columns(known: CatalogTable | None, wanted: CatalogTable) -> tuple[str, ...]:
    """Return the names of added, dropped and changed columns; none for a new table."""
    if known is None:
        return ()
    old = {column.name: column for column in known.columns}
    new = {column.name: column for column in wanted.columns}
    names = [*new, *(name for name in old if name not in new)]
    return tuple(name for name in names if old.get(name) != new.get(name))


def _differs(known: CatalogTable, wanted: CatalogTable) -> bool:
    """Whether formats, serde or properties of the catalog's table must change."""
    serde_lacks = wanted.serde_properties.items() - known.serde_properties.items()
    formats = (wanted.input_format, wanted.output_format, wanted.serde)
    same = formats == (known.input_format, known.output_format, known.serde)
    return known.properties != wanted.properties or bool(serde_lacks) or not same

"""AWS Glue's data catalog, with boto3.

The requests are those of ``AWSGlueCatalogSyncClient``; boto3 finds the credentials.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.errors import CatalogError
from hoodie_ds.sync.catalog import CatalogColumn, CatalogPartition, CatalogTable

T = TypeVar("T")

_READ_AT_ONCE: Final = 1000
_CHANGED_AT_ONCE: Final = 100
_DROPPED_AT_ONCE: Final = 25
_TABLE_INPUT: Final = (
    "Name", "Description", "Owner", "Retention", "StorageDescriptor", "PartitionKeys", "TableType",
    "Parameters", "ViewOriginalText", "ViewExpandedText", "TargetTable",
)  # fmt: skip
"""The fields of the answer of ``get_table`` that ``update_table`` takes."""
_ABSENT: Final = "EntityNotFoundException"
_TAKEN: Final = "AlreadyExistsException"


class GlueCatalog:
    """A database of Glue."""

    extra_properties: Mapping[str, str]

    def __init__(self, options: CatalogOptions) -> None:
        import boto3
        from botocore.exceptions import NoRegionError

        self.extra_properties = {"hudi.metadata-listing-enabled": "FALSE"}
        self._options = options
        self._known: dict[str, dict[str, Any]] = {}
        self._where: dict[str, Any] = {"DatabaseName": options.database}
        self._catalog = {"CatalogId": options.glue_catalog} if options.glue_catalog else {}
        with self._requesting("connect"):
            try:
                self._glue = boto3.client(
                    "glue", region_name=options.glue_region, endpoint_url=options.glue_endpoint
                )
            except NoRegionError as error:
                remedy = f"set {CatalogOptions.glue_region.key} or AWS_DEFAULT_REGION"
                raise CatalogError(f"no AWS region is known; {remedy}") from error

    def location(self, path: str) -> str:
        """Return a base path for Athena: ``s3a`` and ``s3n`` are Hadoop's schemes."""
        return re.sub(r"^s3[an]://", "s3://", path)

    def has_database(self) -> bool:
        """Whether the database exists."""
        name = self._options.database
        return self._found(lambda: self._glue.get_database(Name=name, **self._catalog)) is not None

    def create_database(self) -> None:
        """Create the database with Hudi's description, unless another process did."""
        made = {
            "Name": self._options.database,
            "Description": "automatically created by hoodie",
        }
        self._found(lambda: self._glue.create_database(DatabaseInput=made, **self._catalog), _TAKEN)

    def table(self, name: str) -> CatalogTable | None:
        """Return a table; None if there is none."""
        where = {**self._catalog, **self._where}
        answer = self._found(lambda: self._glue.get_table(Name=name.lower(), **where))
        if answer is None:
            return None
        found = {key: answer["Table"][key] for key in _TABLE_INPUT if key in answer["Table"]}
        self._known[name.lower()] = found
        stored = found.get("StorageDescriptor", {})
        serde = stored.get("SerdeInfo", {})
        return CatalogTable(
            name=name,
            location=stored.get("Location", ""),
            columns=_columns(stored.get("Columns", ())),
            partition_keys=_columns(found.get("PartitionKeys", ())),
            input_format=stored.get("InputFormat", ""),
            output_format=stored.get("OutputFormat", ""),
            serde=serde.get("SerializationLibrary", ""),
            serde_properties=serde.get("Parameters", {}),
            properties=found.get("Parameters", {}),
        )

    def create_table(self, table: CatalogTable) -> None:
        """Create a table."""
        made = {
            "Name": table.name.lower(),
            "TableType": "EXTERNAL_TABLE",
            **_described(table),
            "PartitionKeys": _fields(table.partition_keys),
            "Parameters": dict(table.properties),
        }
        with self._requesting(f"create the table {table.name}"):
            self._glue.create_table(TableInput=made, **self._catalog, **self._where)
        self._known[table.name.lower()] = made

    def change_table(self, table: CatalogTable, *, columns_changed: bool) -> None:
        """Replace a table's entry; if columns have changed, its partitions' too."""
        made = {
            **self._known[table.name.lower()],
            **_described(table),
            "Parameters": dict(table.properties),
        }
        with self._requesting(f"change the table {table.name}"):
            self._glue.update_table(
                TableInput=made,
                SkipArchive=self._options.glue_skips_archive,
                **self._catalog,
                **self._where,
            )
        if columns_changed and table.partition_keys:
            self.change_partitions(table, self.partitions(table, None))

    def drop_table(self, name: str) -> None:
        """Drop a table without its files."""
        with self._requesting(f"drop the table {name}"):
            self._glue.delete_table(Name=name.lower(), **self._catalog, **self._where)

    def partitions(
        self, table: CatalogTable, values: Sequence[tuple[str, ...]] | None
    ) -> list[CatalogPartition]:
        """Return the partitions that have some of the values; all if None."""
        found: list[dict[str, Any]] = []
        where = self._of(table)
        with self._requesting(f"list partitions of {table.name}"):
            if values is None:
                pages = self._glue.get_paginator("get_partitions")
                for page in pages.paginate(ExcludeColumnSchema=True, **where):
                    found += page["Partitions"]
            for part in _parts(values or (), _READ_AT_ONCE):
                asked = [{"Values": list(one)} for one in part]
                answer = self._glue.batch_get_partition(PartitionsToGet=asked, **where)
                found += answer["Partitions"]
        return [
            CatalogPartition(tuple(one["Values"]), one["StorageDescriptor"]["Location"])
            for one in found
        ]

    def add_partitions(self, table: CatalogTable, added: Sequence[CatalogPartition]) -> None:
        """Add partitions; existing ones stay as they are."""
        for part in _parts(added, _CHANGED_AT_ONCE):
            made = [_partition(table, one) for one in part]
            self._done(
                f"add partitions to {table.name}",
                self._glue.batch_create_partition,
                {"PartitionInputList": made, **self._of(table)},
                _TAKEN,
            )

    def change_partitions(self, table: CatalogTable, changed: Sequence[CatalogPartition]) -> None:
        """Change the locations of partitions."""
        for part in _parts(changed, _CHANGED_AT_ONCE):
            entries = [
                {"PartitionValueList": list(one.values), "PartitionInput": _partition(table, one)}
                for one in part
            ]
            self._done(
                f"change partitions of {table.name}",
                self._glue.batch_update_partition,
                {"Entries": entries, **self._of(table)},
            )

    def drop_partitions(self, table: CatalogTable, dropped: Sequence[CatalogPartition]) -> None:
        """Drop partitions without their files; a missing one is no error."""
        for part in _parts(dropped, _DROPPED_AT_ONCE):
            values = [{"Values": list(one.values)} for one in part]
            self._done(
                f"drop partitions of {table.name}",
                self._glue.batch_delete_partition,
                {"PartitionsToDelete": values, **self._of(table)},
                _ABSENT,
            )

    def close(self) -> None:
        """Close the connections."""
        self._glue.close()

    def _of(self, table: CatalogTable) -> dict[str, Any]:
        return {"TableName": table.name.lower(), **self._catalog, **self._where}

    def _done(
        self, what: str, call: Callable[..., Any], arguments: dict[str, Any], harmless: str = ""
    ) -> None:
        """Send a batch request; raise unless its errors have the code `harmless`."""
        with self._requesting(what):
            answer = call(**arguments)
        errors = [
            one["ErrorDetail"]
            for one in answer.get("Errors", ())
            if one["ErrorDetail"].get("ErrorCode") != harmless
        ]
        if errors:
            raise CatalogError(
                f"AWS Glue did not {what} in database {self._options.database}: "
                f"{len(errors)} failed, the first with {errors[0]}"
            )

    def _found(self, ask: Callable[[], T], harmless: str = _ABSENT) -> T | None:
        """Return an answer; None if it is an error of the code `harmless`."""
        from botocore.exceptions import ClientError

        with self._requesting("answer"):
            try:
                return ask()
            except ClientError as error:
                if error.response["Error"]["Code"] != harmless:
                    raise
                return None

    @contextmanager
    def _requesting(self, what: str) -> Iterator[None]:
        """Turn errors of a request into `CatalogError`."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError, OSError) as error:
            raise CatalogError(
                f"AWS Glue did not {what} in database {self._options.database}: {error}"
            ) from error


def _parts(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (whole[start : start + size] for start in range(0, len(whole), size))


def _columns(fields: Sequence[Mapping[str, str]]) -> tuple[CatalogColumn, ...]:
    return tuple(
        CatalogColumn(one["Name"], one.get("Type", ""), one.get("Comment", "")) for one in fields
    )


def _fields(columns: Sequence[CatalogColumn]) -> list[dict[str, str]]:
    return [{"Name": one.name, "Type": one.type, "Comment": one.comment} for one in columns]


def _described(table: CatalogTable) -> dict[str, Any]:
    serde = {
        "SerializationLibrary": table.serde,
        "Parameters": dict(table.serde_properties),
    }
    return {
        "StorageDescriptor": {
            "Columns": _fields(table.columns),
            "Location": table.location,
            "InputFormat": table.input_format,
            "OutputFormat": table.output_format,
            "SerdeInfo": serde,
        }
    }


def _partition(table: CatalogTable, one: CatalogPartition) -> dict[str, Any]:
    described = _described(table)
    described["StorageDescriptor"]["Location"] = one.location
    return {"Values": list(one.values), **described}

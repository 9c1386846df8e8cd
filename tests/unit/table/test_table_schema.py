from __future__ import annotations

import json

import pytest

from hoodie_ds.config.properties.keys import CREATE_SCHEMA
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import SchemaError
from hoodie_ds.table.table import Table, create_table
from hoodie_ds.table.table_schema import table_schema
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.bodies.commit_metadata import SCHEMA_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path

COMMIT = Instant("20250101000000000", Action.COMMIT, State.COMPLETED)
NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
AVRO = json.dumps({"type": "record", "name": "r", "fields": [{"name": "at", "type": NANOS}]})


def table(**properties: str) -> Table:
    options = WriteOptions(base_path="/t", table_name="trips", record_key_fields=("uuid",))
    created = TableProperties.create(options).with_changes(properties)
    return create_table(MemoryStorage(), created, 1_767_225_600_000)


def test_a_schema_that_cannot_be_read_is_named_by_its_commit_and_column() -> None:
    broken = table()
    body = CommitMetadata((), extra={SCHEMA_KEY: AVRO}).to_bytes(1)
    broken.storage.put_if_absent(instant_path(COMMIT), body)
    with pytest.raises(SchemaError, match=rf"^\.hoodie/{COMMIT.time}\.commit: .*'at'"):
        table_schema(broken, load_timeline(broken.storage, 1))


def test_a_schema_of_the_properties_that_cannot_be_read_is_named_by_them() -> None:
    broken = table(**{CREATE_SCHEMA: AVRO})
    with pytest.raises(SchemaError, match=r"^\.hoodie/hoodie\.properties: .*'at'"):
        table_schema(broken, load_timeline(broken.storage, 1))

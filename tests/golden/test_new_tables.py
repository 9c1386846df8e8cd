"""New tables of versions 8 and 9 have the properties that Apache Hudi gives them."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from hoodie_ds.config.enums import MergeMode, PartialUpdateMode
from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.agreement import check_agreement
from hoodie_ds.config.properties.partial_updates import DEBEZIUM_UNAVAILABLE
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError
from hoodie_ds.services.upgrade.properties import translated
from tests.golden.golden_tables import NEW_TABLES

with gzip.open(NEW_TABLES, "rt", encoding="utf-8") as _file:
    STORED: dict[str, Any] = json.load(_file)

NOT_MADE = (
    "PostgresDebeziumAvroPayload",
    "MySqlDebeziumAvroPayload",
    "AWSDmsAvroPayload",
    "HoodieJsonPayload",
    "merger",
)
"""Ends of the names of kinds whose options are refused."""

OURS = {
    keys.INDEX_TYPE,
    keys.NUM_BUCKETS,
    keys.HASH_FIELDS,
    keys.KEYS_OF_BUCKETS,
    keys.COMPLEX_ENCODING,
}
"""What Hudi leaves to the options of every write."""

EVENT, COMMIT, CUSTOM = (
    MergeMode.EVENT_TIME_ORDERING,
    MergeMode.COMMIT_TIME_ORDERING,
    MergeMode.CUSTOM,
)


def options_of(kind: str) -> WriteOptions:
    return WriteOptions.parse({"path": "/tmp/t", **STORED[kind]["options"]})


def stored(kind: str) -> TableProperties:
    text = "".join(f"{k}={v}\n" for k, v in STORED[kind]["properties"].items())
    return TableProperties.parse(text, kind)


@pytest.mark.parametrize("kind", [kind for kind in STORED if not kind.endswith(NOT_MADE)])
def test_a_new_table_is_as_hudi_makes_it(kind: str) -> None:
    expected = dict(STORED[kind]["properties"])
    del expected[keys.CHECKSUM]
    options = options_of(kind)
    made = dict(TableProperties.create(options).raw)
    if "typed" in kind:  # Hudi leaves how a time is written to the options, too
        assert {k: made.pop(k) for k in options.key_generator_options} == (
            options.key_generator_options
        )
    assert {key: text for key, text in made.items() if key not in OURS} == expected


@pytest.mark.parametrize("kind", [kind for kind in STORED if not kind.endswith(NOT_MADE)])
def test_the_options_of_a_table_of_hudi_agree_with_it(kind: str) -> None:
    check_agreement(options_of(kind), stored(kind))


@pytest.mark.parametrize("kind", [kind for kind in STORED if re.fullmatch("v8 of .*Payload", kind)])
def test_a_payload_is_said_in_version_9_as_hudi_says_it(kind: str) -> None:
    eight, nine = f"v8{kind[2:]}", f"v9{kind[2:]}"
    other = {"hoodie.table.initial.version", keys.VERSION, keys.CHECKSUM}
    upgraded = {k: v for k, v in translated(stored(eight), 9).raw.items() if k not in other}
    assert upgraded == {k: v for k, v in stored(nine).raw.items() if k not in other}
    back = translated(stored(nine), 8)
    ours, hudis = dict(back.raw), dict(stored(eight).raw)
    fields = ours.pop(keys.PRECOMBINE_FIELD), hudis.pop(keys.ORDERING_FIELDS)
    assert (fields[0] == fields[1]) is ("Debezium" not in kind)
    assert {k: v for k, v in ours.items() if k not in other} == {
        k: v for k, v in hudis.items() if k not in other
    }


@pytest.mark.parametrize("version", ["v8", "v9"])
@pytest.mark.parametrize("kind", NOT_MADE[:4])
def test_other_payloads_are_refused(version: str, kind: str) -> None:
    with pytest.raises(OptionError, match=r"payload\.class"):
        options_of(f"{version} of {kind}")


@pytest.mark.parametrize(
    ("kind", "order", "mode", "delete_marker"),
    [
        (
            "PostgresDebeziumAvroPayload",
            EVENT,
            PartialUpdateMode.FILL_UNAVAILABLE,
            ("_change_operation_type", "d"),
        ),
        ("MySqlDebeziumAvroPayload", EVENT, None, ("_change_operation_type", "d")),
        ("AWSDmsAvroPayload", COMMIT, None, ("Op", "D")),
        ("HoodieJsonPayload", CUSTOM, None, None),
        ("a merger", CUSTOM, None, None),
        ("a column that marks deletes", EVENT, None, ("name", "gone")),
        ("PartialUpdateAvroPayload", EVENT, PartialUpdateMode.IGNORE_DEFAULTS, None),
        (
            "OverwriteNonDefaultsWithLatestAvroPayload",
            COMMIT,
            PartialUpdateMode.IGNORE_DEFAULTS,
            None,
        ),
    ],
)
def test_how_a_table_of_version_9_merges(
    kind: str,
    order: MergeMode,
    mode: PartialUpdateMode | None,
    delete_marker: tuple[str, str] | None,
) -> None:
    table = stored(f"v9 of {kind}")
    update = table.partial_update
    assert (table.order, update.mode if update else None) == (order, mode)
    assert update is None or update.marker == DEBEZIUM_UNAVAILABLE
    assert table.delete_marker == delete_marker

"""Change data capture in a table's properties, in options, and where the two disagree."""

from __future__ import annotations

import pytest

from hoodie_ds.config.enums import SupplementalLogging
from hoodie_ds.config.properties.agreement import check_agreement
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError, OptionError
from tests.golden.golden_tables import golden_file

ENABLED = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"


def options(**given: str) -> WriteOptions:
    named = {key.replace("__", "."): text for key, text in given.items()}
    table = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    return WriteOptions.parse({"path": "/t", **table, **named})


def logged(given: dict[str, str]) -> dict[str, str]:
    raw = TableProperties.create(options(**given)).raw
    return {key: text for key, text in raw.items() if ".cdc." in key}


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_new_table_says_what_hudis_says(version: str) -> None:
    given = {ENABLED: "true", MODE: "op_key_only", "hoodie.write.table.version": version}
    assert logged(given) == {ENABLED: "true", MODE: "OP_KEY_ONLY"}
    text = golden_file(f"v{version}_mor_cdc", r"^\.hoodie/hoodie\.properties$").decode()
    theirs = dict(line.split("=", 1) for line in text.splitlines() if ".cdc." in line)
    assert logged(given) == theirs


def test_flinks_names_and_the_default_mode() -> None:
    assert logged({"cdc.enabled": "true"}) == {ENABLED: "true", MODE: "DATA_BEFORE_AFTER"}
    both = {"cdc.enabled": "true", "cdc.supplemental.logging.mode": "data_before"}
    assert logged(both)[MODE] == "DATA_BEFORE"


@pytest.mark.parametrize(("version", "expected"), [("6", {}), ("9", {ENABLED: "false"})])
def test_a_table_without_change_data(version: str, expected: dict[str, str]) -> None:
    assert logged({"hoodie.write.table.version": version}) == expected
    assert logged({"hoodie.write.table.version": version, ENABLED: "false"}) == expected


def test_a_mode_alone_is_refused() -> None:
    with pytest.raises(OptionError, match=rf"{MODE}.*takes effect with {ENABLED}=true"):
        TableProperties.create(options(**{MODE: "DATA_BEFORE"}))


def parsed(**given: str) -> TableProperties:
    lines = ["hoodie.table.name=t", "hoodie.table.type=COPY_ON_WRITE", "hoodie.table.version=6"]
    lines += [f"{key}={text}" for key, text in given.items()]
    return TableProperties.parse("\n".join(lines), "p")


def test_what_is_logged() -> None:
    assert parsed().supplemental_logging is None
    assert parsed(**{ENABLED: "false", MODE: "OP_KEY_ONLY"}).supplemental_logging is None
    default = parsed(**{ENABLED: "TRUE"})
    assert default.supplemental_logging is SupplementalLogging.DATA_BEFORE_AFTER
    named = parsed(**{ENABLED: "true", MODE: "data_before"})
    assert named.supplemental_logging is SupplementalLogging.DATA_BEFORE
    named.check_writable()


@pytest.mark.parametrize("wrong", [{ENABLED: "yes"}, {ENABLED: "true", MODE: "EVERYTHING"}])
def test_malformed(wrong: dict[str, str]) -> None:
    with pytest.raises(CorruptFileError, match=next(reversed(wrong))):
        parsed(**wrong)


@pytest.mark.parametrize(
    "given",
    [
        {ENABLED: "false"},
        {MODE: "OP_KEY_ONLY"},
        {"hoodie.streaming.batches.per.commit": "2"},
    ],
)
def test_options_that_a_table_with_change_data_contradicts(given: dict[str, str]) -> None:
    table = TableProperties.create(options(**{ENABLED: "true"}))
    check_agreement(options(**{ENABLED: "true", MODE: "DATA_BEFORE_AFTER"}), table)
    with pytest.raises(OptionError, match=next(iter(given))):
        check_agreement(options(**given), table)


def test_a_table_without_change_data_gets_none() -> None:
    table = TableProperties.create(options())
    with pytest.raises(OptionError, match=ENABLED):
        check_agreement(options(**{ENABLED: "true"}), table)

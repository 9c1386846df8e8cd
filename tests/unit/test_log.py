"""The logger: what its records say, and that all of the package logs through it."""

from __future__ import annotations

import logging

import pytest

from hoodie_ds.log import Log


def test_a_record_names_its_table_its_instant_and_the_code_that_logs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Log("s3://b/50%off", "20250101000000000").warning("%d files of %s", 2, "x%sy")
    (record,) = caplog.records
    assert record.getMessage() == "s3://b/50%off: 2 files of x%sy"
    assert (record.name, record.levelno) == ("hoodie_ds", logging.WARNING)
    assert vars(record)["hoodie_table"] == "s3://b/50%off"
    assert vars(record)["hoodie_instant"] == "20250101000000000"
    assert record.module == "test_log"


def test_every_record_has_both_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "hoodie_ds")
    Log().debug("try %d", 1)
    Log().info("100%")
    shape = logging.Formatter("%(levelname)s [%(hoodie_table)s] [%(hoodie_instant)s] %(message)s")
    assert [shape.format(record) for record in caplog.records] == [
        "DEBUG [] [] try 1",
        "INFO [] [] 100%",
    ]

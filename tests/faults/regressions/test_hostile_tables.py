"""What a table's own properties say may cost a reader or writer no more than it is worth."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import UnsupportedTableError
from tests.tables import TRIPS, trips

RULES = "hoodie.bucket.index.partition.expressions"


def ruled(path: Path, expression: str) -> HoodieTable:
    """A table whose rules another engine has changed."""
    HoodieTable(str(path), {**TRIPS, RULES: "x,2"}).upsert(trips(("1", "y", 1, 1.0)))
    (stored,) = path.rglob("*.hashing_config")
    config = json.loads(stored.read_text())
    stored.write_text(json.dumps({**config, "expressions": expression}))
    return HoodieTable(str(path), {k: v for k, v in TRIPS.items() if k != RULES})


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|aa)*$", "(.*a){20}$", "(?i)([a-z]+)*$"])
def test_a_bucket_rule_took_twice_as_long_with_each_letter(tmp_path: Path, expression: str) -> None:
    table = ruled(tmp_path, f"{expression},2")
    started = time.monotonic()
    table.upsert(trips(("2", "a" * 200 + "-", 1, 1.0)))
    assert time.monotonic() - started < 5
    assert table.read().num_rows == 2


@pytest.mark.parametrize("expression", [r"(a)\1", "(?=a)a", "(?<!b)a"])
def test_a_bucket_rule_that_takes_going_back_is_refused(tmp_path: Path, expression: str) -> None:
    table = ruled(tmp_path, f"{expression},2")
    with pytest.raises(UnsupportedTableError, match="bounded time"):
        table.upsert(trips(("2", "a", 1, 1.0)))
    assert table.read().num_rows == 1

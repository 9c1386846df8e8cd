"""Filters on the tables of Apache Hudi: what they leave unopened holds no row that matches."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.filters.bounds import kind_of
from tests.golden.golden_tables import golden_names, unzip_table
from tests.tiers import by_day

FEW = ["v6_cow_url_encoded", "v6_cow_complex_keys", "v9_mor_bucket", "v9_mor_virtual_keys"]


def check(name: str, tmp_path: Path) -> None:
    table = HoodieTable(str(unzip_table(name, tmp_path)))
    rows = table.read()
    for field in rows.schema:
        if kind_of(field.type) is None or field.name == "_hoodie_commit_seqno":
            continue
        values = pc.unique(rows.column(field.name)).sort()
        for at in sorted({0, len(values) // 2, len(values) - 1} if len(values) else ()):
            column, value = pc.field(field.name), values[at]
            if not value.is_valid:
                continue
            for expression in (column == value, column > value, ~(column > value)):
                found = table.scan([], expression).count_rows()
                assert found == rows.filter(expression).num_rows, str(expression)
        if rows.column(field.name).null_count:
            found = table.scan([], column.is_null()).count_rows()
            assert found == rows.column(field.name).null_count, field.name


@pytest.mark.parametrize("name", FEW)
def test_a_filter_leaves_what_matches(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", by_day(golden_names(), golden_names()[::2]))
def test_a_filter_leaves_what_matches_in_every_table(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)

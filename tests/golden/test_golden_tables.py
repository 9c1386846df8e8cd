"""The golden tables themselves: the notation fits, and a wrong row is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.golden_tables import (
    assert_rows_equal,
    expected_rows,
    golden_names,
    unzip_table,
)
from tests.interop.hudi_rs import read_with_hudi_rs


@pytest.mark.parametrize("name", golden_names("_v6_"))
def test_hudi_rs_reads_the_expected_rows(name: str, tmp_path: Path) -> None:
    assert_rows_equal(read_with_hudi_rs(unzip_table(name, tmp_path)), expected_rows(name))


def test_a_wrong_row_is_found(tmp_path: Path) -> None:
    name = "cow_v6_nonpartitioned"
    rows = expected_rows(name)
    rows[0]["name"] = "someone else"
    with pytest.raises(AssertionError, match="row '1' of partition ''"):
        assert_rows_equal(read_with_hudi_rs(unzip_table(name, tmp_path)), rows)

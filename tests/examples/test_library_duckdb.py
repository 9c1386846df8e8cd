"""The example of the library and DuckDB."""

from __future__ import annotations

from pathlib import Path

from examples.library_duckdb import main


def test_fares_by_city_and_what_was_changed(tmp_path: Path) -> None:
    fares, changed = main(tmp_path)
    assert fares == [("oslo", 1, 9.5), ("rome", 2, 20.0)]
    assert changed == [("c", None, "8.0")]

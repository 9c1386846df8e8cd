"""Every query of the golden tables answers as Apache Hudi's own reader does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import HoodieError
from hoodie_ds.reader.query import open_query
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.storage.connect import storage_to_read
from tests.golden.golden_tables import (
    CDC_QUERY,
    Query,
    assert_rows_equal,
    golden_names,
    queries,
    unzip_table,
)


def _asked(name: str) -> list[Query]:
    """Queries of a table, but for the latest snapshot, which others ask."""
    found = [query for query in queries(name) if query.options]
    return [query for query in found if not CDC_QUERY.items() <= query.options.items()]


ASKED = {name: found for name in golden_names() if (found := _asked(name))}


@pytest.mark.parametrize("name", ASKED)
def test_every_query_answers_as_hudi_does(name: str, tmp_path: Path) -> None:
    path = unzip_table(name, tmp_path)
    for query in ASKED[name]:
        if query.error is not None:
            with pytest.raises(HoodieError):
                _answer(path, query.options)
            continue
        try:
            assert_rows_equal(_answer(path, query.options), query.rows)
        except (HoodieError, AssertionError) as error:
            raise AssertionError(f"{dict(query.options)}: {error}") from error


def _answer(path: Path, options: Mapping[str, str]) -> pa.Table:
    parsed = ReadOptions.parse({**options, "path": str(path)})
    return Scanner(open_query(storage_to_read(parsed), parsed)).to_table()

"""What a merge knows of its whole source, from what each task knows of its rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.filters.predicate import ALL, And, Or
from hoodie_ds.filters.rows import matching
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.source_summary import SourceSummary

COLUMNS = pa.schema({"n": pa.int64(), "s": pa.string()})
STORED = pa.table({"n": [0, 1, 5, 9, 10, None], "s": [*"abcde", "c"]}, COLUMNS)


def summary(*rows: tuple[int | None, str | None]) -> SourceSummary:
    columns = [[row[at] for row in rows] for at in (0, 1)]
    return SourceSummary.of(pa.table(dict(zip("ns", columns, strict=True)), COLUMNS))


@pytest.mark.parametrize(("most", "kept"), [(10, [1, 9]), (1, [1, 5, 9])])
def test_parts_add_up_to_the_whole(
    most: int, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the most values, those between the least and the greatest may match."""
    monkeypatch.setattr("hoodie_ds.sink.source_summary._MOST_VALUES", most)
    parts = [summary((9, "d"), (None, "c")), summary((1, "b"), (1, "c"))]
    for total in (parts[0] + parts[1], parts[1] + parts[0] + parts[0] + summary()):
        assert matching(STORED, total.where(COLUMNS))["n"].to_pylist() == kept
        assert total.has_nulls
    assert not (parts[1] + summary()).has_nulls


def test_no_row_of_an_empty_source_matches() -> None:
    assert summary().where(COLUMNS) == And((Or(()), Or(())))
    assert (summary() + summary((None, None))).where(COLUMNS) == And((Or(()), Or(())))


def test_values_without_order_rule_nothing_out() -> None:
    columns = pa.schema({"x": pa.float64()})
    parts = [SourceSummary.of(pa.table({"x": xs}, columns)) for xs in ([], [1.5, 2.5], [3.5])]
    assert (parts[0] + parts[1] + parts[2]).where(columns) == And((ALL,))
    assert parts[0].where(columns) == And((Or(()),))


def test_digests_add_up() -> None:
    rows = STORED.select(["n"])
    halves = [rows.slice(0, 3), rows.slice(3)]
    parts = [SourceSummary.of(STORED, InputDigest.of(half)) for half in halves]
    assert (parts[0] + parts[1]).digest == InputDigest.of(rows)

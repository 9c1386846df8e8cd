"""A table gets another version while a stream out of it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.query_options import StreamOptions
from hoodie_ds.errors import TimelineError
from tests.integration.test_table_streams import Source, batches, rows_of, through_json
from tests.tables import TYPE, TYPES, VERSION

ONE = {StreamOptions.max_commits.key: "1"}


def _keys(found: list[tuple[dict[str, Any], list[tuple[Any, ...]]]]) -> str:
    return "".join(key for _, rows in found for key, _ in rows)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("is_new", [False, True])
def test_no_commit_comes_again_after_an_upgrade(
    is_new: bool, version: int, kind: str, tmp_path: Path
) -> None:
    """The last one that was read did: its completion is later than its beginning."""
    source = Source(tmp_path, **{TYPE: kind, VERSION: "6"})
    for key in "abc":
        source.write(key)
    reader = source.reader(**ONE)
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    found = [next(follow := batches(reader, start)), next(follow)]
    first, second = (through_json(end) for end, _ in found)
    HoodieTable(source.path).upgrade(version)
    again = source.reader(**ONE) if is_new else reader
    assert rows_of(again, again.initialOffset(), first) == [("a", 0.0)]
    assert rows_of(again, first, second) == [("b", 0.0)]
    assert _keys(list(batches(again, second))) == "c"
    source.table = HoodieTable(source.path)
    source.write("d")
    assert _keys(list(batches(source.reader(**ONE), second))) == "cd"


@pytest.mark.parametrize("is_new", [False, True])
def test_a_downgrade_ends_a_stream(is_new: bool, tmp_path: Path) -> None:
    source = Source(tmp_path, **{VERSION: "9"})
    source.write("a")
    reader = source.reader()
    ((end, _),) = batches(reader)
    HoodieTable(source.path).downgrade(6)
    again = source.reader() if is_new else reader
    with pytest.raises(TimelineError, match="has become one of another version"):
        list(batches(again, end))

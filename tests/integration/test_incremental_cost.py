"""What an incremental query costs: what its commits wrote, however long the table's history is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.local import LocalStorage
from tests.tables import BUCKETS, TRIPS, VERSION, trips


def test_the_last_commit_costs_the_same_late_in_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()

    def count(name: str) -> None:
        original = getattr(LocalStorage, name)

        def counted(*args: Any, **named: Any) -> Any:
            asked[name] += 1
            return original(*args, **named)

        monkeypatch.setattr(LocalStorage, name, counted)

    for name in ("read", "open_input", "list"):
        count(name)
    table = HoodieTable(str(tmp_path), {**TRIPS, BUCKETS: "1", VERSION: "9"})
    costs = []
    for number in range(1, 26):
        table.upsert(trips(("a", "x", number, 1.0)))
        if number in (5, 25):
            begin = table.timeline.completed[-2].ended
            asked.clear()
            assert table.read_incremental(begin).num_rows == 1
            costs.append(dict(asked))
    assert costs[0] == costs[1]

"""Queries of random histories: each moment is the model's, and what changed leads from one to
the next, whatever was written, deleted, replaced and compacted in between."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

Rows = dict[str, tuple[int, float]]
STEPS = 8


def step(table: HoodieTable, model: Rows, chance: random.Random, number: int) -> None:
    """Do something to a table, and the same to the model."""
    keys = chance.sample("abcdefgh", 3)
    rows = trips(*((key, "xy"[ord(key) % 2], number, float(number)) for key in keys))
    what = chance.choices(
        ["upsert", "delete", "overwrite", "delete_partitions", "compact"], [6, 2, 1, 1, 2]
    )[0]
    new = {key: (number, float(number)) for key in keys}
    if what == "upsert" or not model:
        table.upsert(rows)
        model |= new
    elif what == "delete":
        table.delete(rows.select(["id", "city"]))
        for key in keys:
            model.pop(key, None)
    elif what == "overwrite":
        table.overwrite(rows)
        model.clear()
        model |= new
    elif what == "delete_partitions":
        table.delete_partitions("x")
        for key in [key for key in model if ord(key) % 2 == 0]:
            del model[key]
    elif what == "compact" and table.properties.table_type.value == "MERGE_ON_READ":
        table.compact()


def content(rows: Any) -> Rows:
    found = rows.select(["id", "ts", "fare"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: (row["ts"], row["fare"]) for row in found}


def image(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)


def applied(before: Rows, changes: list[dict[str, Any]]) -> Rows:
    """A snapshot after changes, each of which must fit what is there."""
    rows = dict(before)
    for change in sorted(changes, key=lambda row: (row["ts_ms"], row["op"])):
        old, new = image(change["before"]), image(change["after"])
        assert (old is None, new is None) == (change["op"] == "i", change["op"] == "d")
        if old is not None:
            assert rows.pop(old["id"]) == (old["ts"], old["fare"])
        if new is not None:
            assert new["id"] not in rows
            rows[new["id"]] = (new["ts"], new["fare"])
    return rows


@pytest.mark.parametrize("logged", ["true", "false"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 8))]
)
def test_every_moment_and_every_range(
    seed: int, version: str, kind: str, logged: str, tmp_path: Path
) -> None:
    chance = random.Random(f"{seed}/{version}/{kind}/{logged}")
    options = {**TRIPS, BUCKETS: "2", TYPE: kind, VERSION: version}
    table = HoodieTable(str(tmp_path), {**options, "hoodie.table.cdc.enabled": logged})
    model: Rows = {}
    moments: list[tuple[str, str, Rows]] = [("000", "000", {})]
    for number in range(1, STEPS):
        known = set(table.timeline.commits) if number > 1 else set()
        step(table, model, chance, number)
        for new in table.timeline.commits:
            if new not in known:
                moments.append((new.time, new.completion_time or new.time, dict(model)))
    for time, _, rows in moments[1:]:
        assert content(table.read(as_of=time)) == rows
    for number, (_, begin, old) in enumerate(moments):
        for _, end, new_rows in moments[number + 1 :]:
            changes = table.read_changes(begin, end).to_pylist()
            assert applied(old, changes) == new_rows
            news = content(table.read_incremental(begin, end))
            assert news.items() <= new_rows.items()
            gone = old.keys() - new_rows.keys()
            assert {**{k: v for k, v in old.items() if k not in gone}, **news} == new_rows

"""Rows that lack columns, against records merged two by two as Hudi's own readers merge them."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds.config.enums import MergeMode
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.record.merge.partial_merger import PartialMerger

KEY = "_hoodie_record_key"
BY_COMMIT, BY_EVENT = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING


@dataclass(frozen=True)
class Change:
    """A record: the columns that it has, or None where it is a delete."""

    key: str
    ts: int | None
    values: dict[str, str] | None


def records(*changes: Change) -> RecordSet:
    columns = {
        name: pa.array([(change.values or {}).get(name) for change in changes], pa.string())
        for name in "abc"
    }
    keys = pa.array([change.key for change in changes], pa.string())
    times = pa.array([change.ts for change in changes], pa.int64())
    rows = pa.table({KEY: keys, "ts": times, **columns})
    deleted = np.array([change.values is None for change in changes], dtype=np.bool_)
    lacking = np.zeros(rows.shape, dtype=np.bool_)
    for row, change in enumerate(changes):
        if change.values is not None:
            lacking[row, 2:] = [name not in change.values for name in "abc"]
    return RecordSet(rows, deleted, (rows.column("ts"),), lacking=lacking)


def read(
    mode: MergeMode, base: list[Change], *batches: list[Change]
) -> dict[str, tuple[object, ...]]:
    merger = PartialMerger(Merger(mode))
    combined = merger.combine(RecordSet.concat([records(*batch) for batch in batches]))
    merge = merger.over(combined)
    stored = RecordSet.of_rows(records(*base).rows, ["ts"])
    parts = []
    for piece in (slice(0, 2), slice(2, None)):  # pieces of any size
        rows = stored.rows[piece]
        old = RecordSet.of_rows(rows, ["ts"])
        parts.append(rows.filter(pa.array(merge.keep(old))))
    found = pa.concat_tables([*parts, merge.new_rows()]).to_pylist()
    by_key = {row.pop(KEY): tuple(row.values()) for row in found}
    assert len(by_key) == len(found)
    return by_key


def pairwise(mode: MergeMode, base: list[Change], changes: list[Change]) -> dict[str, Change]:
    """The records of a key folded two by two, and their outcome over the stored row."""
    folded: dict[str, Change] = {}
    for change in changes:
        folded[change.key] = two(mode, folded.get(change.key), change)
    for row in base:
        folded[row.key] = two(mode, row, folded[row.key]) if row.key in folded else row
    return {key: change for key, change in folded.items() if change.values is not None}


def two(mode: MergeMode, old: Change | None, new: Change) -> Change:
    if old is None:
        return new
    new_wins = mode is BY_COMMIT or (new.ts or 0) >= (old.ts or 0)
    greater, other = (new, old) if new_wins else (old, new)
    if greater.values is None or other.values is None:
        return greater
    return Change(new.key, greater.ts, {**other.values, **greater.values})


@pytest.mark.parametrize("mode", [BY_COMMIT, BY_EVENT])
@pytest.mark.parametrize("seed", range(30))
def test_merges_as_two_by_two(mode: MergeMode, seed: int) -> None:
    draw = random.Random(seed)

    def change(number: int) -> Change:
        names = draw.sample("abc", draw.randint(1, 3))
        values = (
            None
            if mode is BY_COMMIT and draw.random() < 0.15
            else dict.fromkeys(names, f"{number}")
        )
        return Change(f"k{draw.randrange(6)}", draw.randrange(8), values)

    base = [Change(f"k{n}", draw.randrange(8), dict.fromkeys("abc", "base")) for n in range(4)]
    changes = [change(number) for number in range(draw.randint(1, 20))]
    cut = draw.randrange(len(changes))
    found = read(mode, base, changes[:cut], changes[cut:])
    expected = pairwise(mode, base, changes)
    assert found == {
        key: (row.ts, *((row.values or {}).get(name) for name in "abc"))
        for key, row in expected.items()
    }


def test_complete_rows_are_merged_as_usual() -> None:
    full = Change("k1", 3, dict.fromkeys("abc", "new"))
    base = [Change("k1", 2, dict.fromkeys("abc", "base")), Change("k2", 2, {})]
    assert read(BY_EVENT, base, [full])["k1"] == (3, "new", "new", "new")


def test_parts_without_the_mask_have_all_columns() -> None:
    full = records(Change("k1", 3, dict.fromkeys("abc", "full")))
    parts = [
        RecordSet(full.rows, full.deleted, full.ordering),
        records(Change("k1", 4, {"a": "x"})),
    ]
    merger = PartialMerger(Merger(BY_EVENT))
    assert merger.needs_complete_rows
    (row,) = merger.combine(RecordSet.concat(parts)).rows.to_pylist()
    assert row == {KEY: "k1", "ts": 4, "a": "x", "b": "full", "c": "full"}
    whole = merger.combine(RecordSet.concat([parts[0], parts[0]]))
    assert whole.rows.num_rows == 1
    assert merger.over(whole).keep(RecordSet.of_rows(full.rows, ["ts"])).tolist() == [False]


def test_a_delete_of_a_later_time_hides_the_values_before_it() -> None:
    late = [Change("k1", 1, {"b": "x"}), Change("k1", 5, None), Change("k1", 7, {"a": "y"})]
    assert read(BY_EVENT, [], late) == {"k1": (7, "y", None, None)}

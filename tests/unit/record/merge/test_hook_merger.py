"""Merging by a hook against the fold told row by row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.config.enums import MergeMode
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import OptionError
from hoodie_ds.record.merge.hook_merger import HookMerger, merger_of
from hoodie_ds.record.merge.merge_hook import HookCall, Merged, MergeHook
from hoodie_ds.record.merge.merger import Merger, RecordSet
from tests.merge_hooks import add, chain

Rec = tuple[str, object, bool]
"""Key, value, whether it is a delete."""


def recs(values: st.SearchStrategy[object]) -> st.SearchStrategy[list[Rec]]:
    return st.lists(st.tuples(st.sampled_from("abc"), values, st.booleans()), max_size=12)


def records(name: str, kind: pa.DataType, rows: list[Rec]) -> RecordSet:
    table = pa.table(
        {
            name: pa.array([value for _, value, _ in rows], kind),
            "_hoodie_record_key": pa.array([key for key, _, _ in rows], pa.string()),
        }
    )
    return RecordSet(table, np.array([deleted for _, _, deleted in rows], np.bool_), ())


def check(
    hook: MergeHook,
    column: tuple[str, pa.DataType],
    merge: Callable[[object, object], object],
    stored: dict[str, object],
    batches: list[list[Rec]],
) -> None:
    """`batches` are combined, then all of them together, and merged over what is stored."""
    expected = dict(stored)
    for key, value, deleted in [rec for batch in batches for rec in batch]:
        result = None if deleted else merge(expected.get(key), value)
        expected.pop(key, None)
        if result is not None:
            expected[key] = result
    merger = HookMerger(HookCall(hook, "mine"))
    written = [merger.combine(records(*column, batch)) for batch in batches]
    news = merger.combine(RecordSet.concat(written))
    olds = records(*column, [(key, value, False) for key, value in stored.items()])
    pieces = [olds.take(np.arange(olds.num_rows)[half]) for half in (slice(1), slice(1, None))]
    merging = merger.over(news)
    kept = [piece.rows.filter(pa.array(merging.keep(piece))) for piece in pieces]
    result = pa.concat_tables([*kept, merging.new_rows()])
    found = zip(
        result["_hoodie_record_key"].to_pylist(), result[column[0]].to_pylist(), strict=True
    )
    assert dict(found) == expected
    assert result.num_rows == len(expected)
    touched = {key for batch in batches for key, _, _ in batch}
    assert merging.num_updates == len(touched & stored.keys() & expected.keys())
    assert merging.num_inserts == len(expected.keys() - stored.keys())
    assert merging.num_deletes == len(stored.keys() - expected.keys())
    assert merging.changes_nothing == (not touched & (stored.keys() | expected.keys()))


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz")),
    st.lists(recs(st.sampled_from("pqr")), min_size=1, max_size=3),
)
def test_rows_are_chained_in_commit_order_and_begin_anew_after_a_delete(
    stored: dict[str, object], batches: list[list[Rec]]
) -> None:
    check(chain, ("v", pa.string()), lambda old, new: f"{old or '^'}{new}", stored, batches)


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([1.0, 2.0])),
    st.lists(recs(st.sampled_from([-2.0, -1.0, 1.0])), min_size=1, max_size=3),
)
def test_a_hook_may_delete(stored: dict[str, object], batches: list[list[Rec]]) -> None:
    def merge(old: object, new: object) -> object:
        return (old or 0.0) + new or None  # type: ignore[operator]

    check(add, ("fare", pa.float64()), merge, stored, batches)


def test_combined_records_are_in_the_order_of_the_last_of_each_key() -> None:
    rows: list[Rec] = [("a", "1", False), ("b", "2", False), ("a", "3", False), ("c", "4", False)]
    combined = HookMerger(HookCall(chain, "mine")).combine(records("v", pa.string(), rows))
    assert combined.rows["v"].to_pylist() == ["2", "13", "4"]


def test_the_hook_is_called_once_for_each_further_record_of_the_most_frequent_key() -> None:
    calls: list[int] = []

    def counted(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        calls.append(new.num_rows)
        return chain(old, new, no_old)

    rows: list[Rec] = [(key, "x", False) for key in "aaabbc"]
    HookMerger(HookCall(counted, "mine")).combine(records("v", pa.string(), rows))
    assert calls == [2, 1]


def test_meta_columns_are_those_of_the_newer_row_and_the_hook_does_not_see_them() -> None:
    seen: list[str] = []

    def noted(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        seen.extend([*old.column_names, *new.column_names])
        return Merged(old)

    def row(time: str, value: str) -> RecordSet:
        table = pa.table({"_hoodie_commit_time": [time], "_hoodie_record_key": ["a"], "v": [value]})
        return RecordSet(table, np.array([False]), ())

    merging = HookMerger(HookCall(noted, "mine")).over(row("2", "new"))
    merging.keep(row("1", "old"))
    assert merging.new_rows().to_pylist() == [
        {"_hoodie_commit_time": "2", "_hoodie_record_key": "a", "v": "old"}
    ]
    assert seen == ["v", "v"]


def test_a_row_that_the_hook_keeps_has_the_commit_that_wrote_it() -> None:
    """A user's hook that takes the greater value, among log records and over stored rows."""

    def greatest(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        kept = pc.fill_null(pc.greater(old["v"], new["v"]), False)
        return Merged(new, kept=kept.combine_chunks())

    def rows(time: str, **values: int) -> RecordSet:
        columns = {"_hoodie_commit_time": [time] * len(values), "_hoodie_record_key": list(values)}
        table = pa.table({**columns, "v": list(values.values())})
        return RecordSet(table, np.zeros(len(values), np.bool_), ())

    merger = HookMerger(HookCall(greatest, "mine"))
    logs = RecordSet.concat([rows("2", a=5, b=1, c=7, d=1), rows("3", a=4, b=2, c=9)])
    merging = merger.over(merger.combine(logs))
    stored = rows("1", a=1, b=3, c=8, e=0)
    assert merging.keep(stored).tolist() == [False, True, False, True]
    new = merging.new_rows().sort_by("_hoodie_record_key")
    assert new.to_pydict() == {
        "_hoodie_commit_time": ["2", "3", "2"],
        "_hoodie_record_key": ["a", "c", "d"],
        "v": [5, 9, 1],
    }
    assert (merging.num_updates, merging.num_inserts, merging.num_deletes) == (2, 1, 0)
    merging = merger.over(rows("4", a=0))
    merging.keep(stored)
    assert merging.changes_nothing


def properties(mode: str) -> TableProperties:
    text = f"hoodie.table.name=t\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.version=6\nhoodie.record.merge.mode={mode}\nhoodie.py.merge.hook=os:abort\n"  # noqa: E501
    return TableProperties.parse(text, "p")


def test_the_mode_chooses_the_merger() -> None:
    by_commit = merger_of(properties("COMMIT_TIME_ORDERING"), None)
    assert by_commit == Merger(MergeMode.COMMIT_TIME_ORDERING)
    assert merger_of(properties("CUSTOM"), add) == HookMerger(
        HookCall(add, "tests.merge_hooks:add")
    )


def test_the_table_does_not_choose_the_hook() -> None:
    with pytest.raises(OptionError, match=r"'hoodie.py.merge.hook' is not set: .*os:abort"):
        merger_of(properties("CUSTOM"), None)


def test_a_hook_is_refused_where_the_mode_has_none() -> None:
    with pytest.raises(OptionError, match="merges rows by COMMIT_TIME_ORDERING"):
        merger_of(properties("COMMIT_TIME_ORDERING"), add)

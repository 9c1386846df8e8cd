"""The merge function against its rules told row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.config.enums import MergeMode
from hoodie_ds.record.merge.merger import Merger, RecordSet
from tests.merge_model import KINDS, orders

EVENT, COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING


@dataclass(frozen=True)
class Rec:
    key: str
    order: int | None
    deleted: bool
    value: int


RECORDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(-2, 3)), st.booleans()),
    max_size=12,
).map(lambda drawn: [Rec(*fields, value) for value, fields in enumerate(drawn)])


def records(recs: list[Rec], *, ordered: bool = True) -> RecordSet:
    rows = pa.table(
        {
            "_hoodie_record_key": pa.array([r.key for r in recs], pa.string()),
            "v": pa.array([r.value for r in recs], pa.int64()),
        }
    )
    ordering = pa.chunked_array([pa.array([r.order for r in recs], pa.int64())])
    deleted = np.array([r.deleted for r in recs], np.bool_)
    return RecordSet(rows, deleted, (ordering,) if ordered else ())


def wins(new: Rec, old: Rec, mode: MergeMode) -> bool:
    if mode is COMMIT:
        return True
    if any(r.deleted and r.order is None for r in (new, old)):
        return True
    lowest = -9  # of a null
    return (lowest if new.order is None else new.order) >= (
        lowest if old.order is None else old.order
    )


def fold(recs: list[Rec], mode: MergeMode) -> dict[str, Rec]:
    found: dict[str, Rec] = {}
    for new in recs:
        old = found.get(new.key)
        gone = old is not None and old.deleted and old.order is None and mode is EVENT
        if old is None or (wins(new, old, mode) and not (gone and new.deleted)):
            found[new.key] = new
    return found


@pytest.mark.parametrize("mode", [EVENT, COMMIT])
@given(recs=RECORDS)
def test_combine_is_a_fold_in_commit_order(mode: MergeMode, recs: list[Rec]) -> None:
    combined = Merger(mode).combine(records(recs))
    found = zip(
        combined.rows["_hoodie_record_key"].to_pylist(),
        combined.ordering[0].to_pylist(),
        combined.deleted.tolist(),
        combined.rows["v"].to_pylist(),
        strict=True,
    )
    # Of deletes alone key and order count.
    assert {r if not r.deleted else replace(r, value=0) for r in fold(recs, mode).values()} == {
        Rec(key, order, deleted, 0 if deleted else value) for key, order, deleted, value in found
    }
    assert combined.num_rows == len({r.key for r in recs})


@pytest.mark.parametrize("mode", [EVENT, COMMIT])
@given(stored=RECORDS, later=RECORDS)
def test_merge_decides_key_by_key(mode: MergeMode, stored: list[Rec], later: list[Rec]) -> None:
    old = {r.key: r for r in stored if not r.deleted}
    new = {r.key: Rec(r.key, r.order, r.deleted, r.value + 100) for r in later}
    expected = dict(old)
    inserts = updates = deletes = 0
    for key, record in new.items():
        if key in old and not wins(record, old[key], mode):
            continue
        expected.pop(key, None)
        if not record.deleted:
            expected[key] = record
            updates += key in old
            inserts += key not in old
        else:
            deletes += key in old
    ours, theirs = records([*old.values()]), records([*new.values()])
    merge = Merger(mode).over(theirs)
    half = ours.num_rows // 2
    pieces = [ours.take(np.arange(half)), ours.take(np.arange(half, ours.num_rows))]
    keep = np.concatenate([merge.keep(piece) for piece in pieces])
    kept = ours.rows.filter(pa.array(keep))["v"].to_pylist()
    taken = merge.new_rows()["v"].to_pylist()
    assert sorted(kept + taken) == sorted(r.value for r in expected.values())
    assert (merge.num_inserts, merge.num_updates, merge.num_deletes) == (inserts, updates, deletes)
    assert merge.changes_nothing == (inserts + updates + deletes == 0)


@pytest.mark.parametrize(("order", "gone"), [(4, ["a"]), (9, [])])
def test_a_key_is_gone_once_no_row_of_it_is_left(order: int, gone: list[str]) -> None:
    """An insert may have stored it several times, with any ordering values."""
    deletes = [Rec("a", 5, True, 0), Rec("z", 5, True, 1)]
    merge = Merger(EVENT).over(records([*deletes, Rec("b", 9, False, 2)]))
    for stored in (Rec("a", 4, False, 3), Rec("a", order, False, 4), Rec("b", 1, False, 5)):
        merge.keep(records([stored]))
    assert merge.deleted_keys.to_pylist() == gone


@pytest.mark.parametrize("mode", [EVENT, COMMIT])
def test_without_ordering_fields_the_later_record_wins(mode: MergeMode) -> None:
    recs = [Rec("a", 9, False, 0), Rec("a", 1, False, 1)]
    assert Merger(mode).combine(records(recs, ordered=False)).rows["v"].to_pylist() == [1]


def test_a_tie_goes_to_the_later_record() -> None:
    recs = [Rec("a", 5, False, 0), Rec("a", 5, False, 1)]
    assert Merger(EVENT).combine(records(recs)).rows["v"].to_pylist() == [1]


def test_a_delete_with_a_value_remembers_it() -> None:
    """A tombstone at 9 keeps a later record of 7 out."""
    recs = [Rec("a", 9, True, 0), Rec("a", 7, False, 1)]
    combined = Merger(EVENT).combine(records(recs))
    assert (combined.rows["v"].to_pylist(), combined.deleted.tolist()) == ([0], [True])


def test_a_delete_without_a_value_yields_to_what_comes_after() -> None:
    recs = [Rec("a", 9, False, 0), Rec("a", None, True, 1), Rec("a", 2, False, 2)]
    assert Merger(EVENT).combine(records(recs)).rows["v"].to_pylist() == [2]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_how_rows_are_cut_does_not_matter(kind: str, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.tuples(st.sampled_from("ab"), orders(kind)), max_size=10))
    cut = data.draw(st.integers(0, len(drawn)))
    rows = pa.table(
        {
            "_hoodie_record_key": pa.array([key for key, _ in drawn], pa.string()),
            "ts": pa.array([order for _, order in drawn], KINDS[kind][0]),
            "v": pa.array(range(len(drawn)), pa.int64()),
        }
    )
    merger, whole = Merger(EVENT), RecordSet.of_rows(rows, ("ts",))
    once = merger.combine(whole).rows["v"].to_pylist()
    early, late = (merger.combine(whole.take(part)) for part in np.split(positions(whole), [cut]))
    assert merger.combine(RecordSet.concat([early, late])).rows["v"].to_pylist() == once
    merge = merger.over(late)
    kept = early.rows.filter(pa.array(merge.keep(early)))["v"].to_pylist()
    assert sorted(kept + merge.new_rows()["v"].to_pylist()) == once


def positions(records: RecordSet) -> np.ndarray:
    return np.arange(records.num_rows)


def test_a_row_after_an_unconditional_delete_replaces_the_row_of_a_copy_on_write_table() -> None:
    """In a merge-on-read table it meets that row, which may have the greater value."""
    later = [Rec("a", None, True, 1), Rec("a", 2, False, 2), Rec("b", 2, False, 3)]
    stored = records([Rec("a", 9, False, 0), Rec("b", 9, False, 0)])
    for applies_deletes, kept in ((True, [False, True]), (False, [True, True])):
        merger = Merger(EVENT, applies_deletes)
        assert merger.over(merger.combine(records(later))).keep(stored).tolist() == kept


def test_a_delete_after_another_one_and_a_row_removes_what_is_stored() -> None:
    later = [Rec("a", None, True, 1), Rec("a", 2, False, 2), Rec("a", 3, True, 3)]
    merger = Merger(EVENT, applies_deletes=True)
    assert not merger.over(merger.combine(records(later))).keep(records([Rec("a", 9, False, 0)]))


def test_concat_keeps_order_and_empty_parts_are_harmless() -> None:
    one, none = records([Rec("a", 1, False, 1)]), records([])
    both = RecordSet.concat([none, one, one])
    assert both.rows["v"].to_pylist() == [1, 1]
    assert both.ordering[0].to_pylist() == [1, 1]
    assert Merger(EVENT).combine(RecordSet.concat([none, none])).num_rows == 0

"""What a hook may return, and how its failures are reported."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.errors import MergeHookError, OptionError
from hoodie_ds.record.merge.merge_hook import HookCall, Merged, hook_call
from tests.merge_hooks import add, chain

NEW = pa.table({"v": ["a", "b"], "_hoodie_record_key": ["k1", "k2"]})
USER = NEW.select(["v"])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "returned a NoneType"),
        ((USER, None), "returned a tuple"),
        (Merged(USER.to_pydict()), "returned a dict"),
        (Merged(USER.slice(1)), "1 rows for 2"),
        (Merged(NEW), "returned columns"),
        (Merged(USER.rename_columns(["w"])), "returned columns"),
        (Merged(pa.table({"v": [1, 2]})), "'v' of its result is int64, not string"),
        (Merged(USER, pa.array([True])), "1 values for 2 rows"),
        (Merged(USER, pa.array([True, None])), "has nulls"),
        (Merged(USER, pa.array([1, 0])), "is a int64, not bool"),
        (Merged(USER, [True, False]), "mask of deletes is a list, not bool"),
        (Merged(USER, None, [True, False]), "mask of kept rows is a list, not bool"),
        (Merged(USER, kept=pa.array([True])), "1 values for 2 rows"),
    ],
)
def test_a_wrong_result_names_hook_and_key(answer: object, problem: str) -> None:
    call = HookCall(lambda *_: answer, "my.hooks:mine")  # type: ignore[arg-type]
    with pytest.raises(MergeHookError, match=problem) as caught:
        call.merge(NEW, NEW)
    assert "my.hooks:mine" in str(caught.value)
    assert "'k1'" in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None]),
        pa.array([1.5, float("nan")]),
        pa.array([b"a", b"b"]),
        pa.array([{"x": 1}, {"x": None}]),
    ],
)
def test_a_row_keeps_key_and_partition_of_one_of_the_two(values: pa.Array) -> None:
    """Neither nulls nor NaN are another place; a null where nothing is stored is one."""
    place = "v.x" if pa.types.is_struct(values.type) else "v"
    new = NEW.set_column(0, "v", values)
    old = new.take([1, 0])

    def call(answer: pa.Table) -> HookCall:
        return HookCall(lambda *_: Merged(answer), "mine", (place,))

    for rows in (new, old):
        merged, *_ = call(rows.select(["v"])).merge(old, new)
        assert repr(merged["v"].to_pylist()) == repr(rows["v"].to_pylist())
    nulls = pa.array([None, None], values.type)
    if pa.types.is_struct(values.type):
        nulls = pa.array([{"x": None}] * 2, values.type)
    with pytest.raises(MergeHookError, match=f"'k1' .* it made '{place}' = None of "):
        call(pa.table({"v": nulls})).insert(new)
    all_kept = Merged(
        pa.table({"v": nulls}), kept=pa.array([True, True])
    )  # then no row is looked at
    keeping = HookCall(lambda *_: all_kept, "mine", (place,))
    assert keeping.merge(old, new)[2].all()
    with pytest.raises(MergeHookError, match=f"it made '{place}' = None of "):
        keeping.insert(new)  # there is none that could be kept


def test_nulls_are_refused_in_a_column_that_has_none() -> None:
    schema = pa.schema([pa.field("v", pa.string(), nullable=False), NEW.schema.field(1)])
    call = HookCall(lambda *_: Merged(pa.table({"v": ["a", None]})), "mine")
    with pytest.raises(MergeHookError, match="nulls"):
        call.merge(NEW, NEW.cast(schema))


def test_what_a_hook_raises_is_the_cause() -> None:
    with pytest.raises(MergeHookError, match=r"tests.merge_hooks:fails .*'k1'.*KeyError") as caught:
        hook_call("tests.merge_hooks:fails").insert(NEW)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_interrupt_is_no_failure_of_the_hook() -> None:
    def interrupted(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HookCall(interrupted, "mine").merge(NEW, NEW)


def test_merged_rows_keep_the_other_columns_and_their_order() -> None:
    rows, deleted, kept = HookCall(chain, "mine").merge(NEW, NEW)
    assert rows == pa.table({"v": ["aa", "bb"], "_hoodie_record_key": ["k1", "k2"]})
    assert not deleted.any()
    assert not kept.any()


def test_a_row_that_is_deleted_is_not_kept() -> None:
    masks = pa.array([True, False]), pa.array([True, True])
    _, deleted, kept = HookCall(lambda *_: Merged(USER, *masks), "mine").merge(NEW, NEW)
    assert (deleted.tolist(), kept.tolist()) == ([True, False], [False, True])


def test_without_an_old_row_its_columns_are_null() -> None:
    def noted(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        assert old == pa.table({"v": pa.nulls(2, pa.string())})
        assert no_old.to_pylist() == [True, True]
        return Merged(new, pa.chunked_array([[True], [False]]))

    rows, deleted = HookCall(noted, "mine").insert(NEW)
    assert (rows, deleted.tolist()) == (NEW, [True, False])


def test_without_rows_the_hook_is_not_called() -> None:
    none = NEW.slice(2)
    rows, *masks = hook_call("tests.merge_hooks:fails").merge(none, none)
    assert (rows.num_rows, *map(len, masks)) == (0, 0, 0)


def test_a_hook_by_its_path() -> None:
    assert hook_call("tests.merge_hooks:add") == hook_call(add)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("tests.no_such_module:add", "ModuleNotFoundError"),
        ("tests.merge_hooks:no_such_hook", "AttributeError"),
        ("tests.merge_hooks:not_callable", "no callable"),
    ],
)
def test_a_path_to_nothing_is_refused(path: str, problem: str) -> None:
    with pytest.raises(OptionError, match=problem) as caught:
        hook_call(path)
    assert (caught.value.key, caught.value.value) == ("hoodie.py.merge.hook", path)

"""Tables that merge by a user's hook: every way a row can take."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.enums import MergeMode
from hoodie_ds.errors import MergeHookError, OptionError
from hoodie_ds.record.merge.merge_hook import Merged, MergeHook
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.timeline.loading import read_commit
from tests.merge_hooks import HOOK, MODE, add, fails
from tests.tables import BUCKETS, ORDERING, TRIPS, TYPE, TYPES, VERSION, found, tree, trips

OPTIONS = {**{key: TRIPS[key] for key in TRIPS if key != ORDERING}, BUCKETS: "1", MODE: "CUSTOM"}
BY_PATH = {**OPTIONS, HOOK: "tests.merge_hooks:add"}


def fare(*rows: tuple[str, float], deleted: str = "") -> pa.Table:
    """Rows of one city; those whose key is in `deleted` have a mark."""
    table = trips(*((key, "x", 1, value) for key, value in rows))
    marks = [key in deleted for key, _ in rows]
    return table.append_column("_hoodie_is_deleted", pa.array(marks))


def fares(table: HoodieTable) -> dict[str, float]:
    return {key: value for key, _, _, value in found(table)}


@pytest.mark.parametrize("kind", TYPES)
def test_rows_of_one_key_meet_wherever_they_are(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(str(tmp_path), {**BY_PATH, TYPE: kind})
    table.upsert(fare(("a", 1.0), ("b", 2.0), ("a", 4.0), ("z", 1.0), ("z", -1.0)))
    assert fares(table) == {"a": 5.0, "b": 2.0}
    table.upsert(fare(("b", 8.0), ("c", 16.0), ("c", 32.0), ("d", 0.0)))
    assert fares(table) == {"a": 5.0, "b": 10.0, "c": 48.0}
    table.upsert(fare(("a", -3.0), ("a", -2.0), ("b", 1.0), ("b", 1.0)))
    assert fares(table) == {"b": 12.0, "c": 48.0}


@pytest.mark.parametrize("kind", TYPES)
def test_a_row_after_a_delete_begins_anew(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(str(tmp_path), {**BY_PATH, TYPE: kind})
    table.upsert(fare(("a", 1.0), ("b", 2.0), ("c", 3.0)))
    table.upsert(pa.concat_tables([fare(("a", 0.0), ("c", 0.0), deleted="ac"), fare(("a", 7.0))]))
    assert fares(table) == {"a": 7.0, "b": 2.0}
    table.delete(trips(("b", "x", 1, 0.0)).select(["id", "city"]))
    table.upsert(fare(("b", 5.0), ("a", 1.0)))
    assert fares(table) == {"a": 8.0, "b": 5.0}


def test_what_a_commit_says_of_its_rows(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), BY_PATH)
    table.upsert(fare(("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 0.0)))
    table.upsert(fare(("a", 1.0), ("b", -2.0), ("c", 0.0), ("e", 1.0), ("f", 0.0), deleted="c"))
    storage = LocalStorage(str(tmp_path))
    stats = [read_commit(storage, instant).stats[0] for instant in table.timeline.commits]
    counts = [(s.num_writes, s.num_inserts, s.num_update_writes, s.num_deletes) for s in stats]
    assert counts == [(3, 3, 0, 0), (2, 1, 1, 2)]


def test_a_batch_that_the_hook_leaves_nothing_of_changes_no_file(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), BY_PATH)
    table.upsert(fare(("a", 1.0)))
    files = set(tmp_path.rglob("*.parquet"))
    table.upsert(fare(("d", 0.0)))
    assert set(tmp_path.rglob("*.parquet")) == files


@pytest.mark.parametrize("kind", TYPES)
def test_the_hook_sees_each_inserted_row_once_without_an_old_one(tmp_path: Path, kind: str) -> None:
    seen: list[tuple[str, bool]] = []

    def noted(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        seen.extend(zip(new["id"].to_pylist(), no_old.to_pylist(), strict=True))
        return add(old, new, no_old)

    table = HoodieTable(str(tmp_path), {**OPTIONS, TYPE: kind}, merge_hook=noted)
    table.upsert(fare(("a", 1.0), ("b", 1.0)))
    assert seen == [("a", True), ("b", True)]
    seen.clear()
    table.upsert(fare(("b", 1.0), ("c", 1.0)))
    assert fares(table) == {"a": 1.0, "b": 2.0, "c": 1.0}
    assert seen == [("b", False), ("c", True)]


@pytest.mark.parametrize("kind", TYPES)
def test_columns_that_are_not_asked_for_are_merged_all_the_same(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(str(tmp_path), {**BY_PATH, TYPE: kind})
    table.upsert(fare(("a", 1.0), ("b", 1.0)))
    table.upsert(fare(("a", -1.0)))
    assert table.read(columns=["id"]).to_pydict() == {"id": ["b"]}
    assert table.read(columns=["_hoodie_record_key"]).num_rows == 1


def with_city(city: str | None, *, older: bool = False) -> MergeHook:
    """A hook that answers the new row, or the old one, in some city."""

    def hook(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        rows = old if older and not no_old[0].as_py() else new
        return Merged(rows if city is None else set_column(rows, "city", city))

    return hook


def with_id(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
    return Merged(set_column(new, "id", "zz"))


def without_city(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
    """What it answers for a key that it deletes says nothing."""
    return Merged(set_column(new, "city", None), pa.array([True] * new.num_rows))


def written_and_read(table: HoodieTable, rows: pa.Table) -> None:
    """What lies in log files is merged as it is read."""
    table.upsert(rows)
    table.read()


def set_column(rows: pa.Table, name: str, value: str | None) -> pa.Table:
    values = pa.array([value] * rows.num_rows, pa.string())
    return rows.set_column(rows.column_names.index(name), name, values)


@pytest.mark.parametrize(("version", "kind"), [(v, kind) for v in "689" for kind in TYPES])
def test_a_hook_moves_no_row(version: str, kind: str, tmp_path: Path) -> None:
    """Where a row is stored its key and partition say; reads would pass it over elsewhere."""
    options = {**OPTIONS, TYPE: kind, VERSION: version}
    table = HoodieTable(str(tmp_path), options, merge_hook=with_city(None))
    table.upsert(fare(("a", 1.0), ("b", 1.0)))
    for hook, problem in (
        (with_id, "'id' = 'zz' of 'a'"),
        (with_city("y"), "'city' = 'y' of 'x'"),
        (with_city(""), "'city' = '' of 'x'"),
    ):
        bad = HoodieTable(str(tmp_path), options, merge_hook=hook)
        with pytest.raises(MergeHookError, match=f"on key 'a' .* it made {problem}, "):
            written_and_read(bad, fare(("a", 2.0), ("c", 1.0)))
    assert fares(table).keys() >= {"a", "b"}
    table.upsert(fare(("a", 3.0)))
    assert fares(table)["a"] == 3.0
    table = HoodieTable(str(tmp_path), options, merge_hook=with_city(None, older=True))
    table.upsert(fare(("b", 9.0), ("d", 1.0)))
    assert fares(table)["b"] == 1.0
    gone = HoodieTable(str(tmp_path), options, merge_hook=without_city)
    gone.upsert(fare(("d", 9.0)))
    assert "d" not in fares(gone)


def test_the_table_records_its_hook(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), OPTIONS, merge_hook=add)
    table.upsert(fare(("a", 1.0)))
    assert table.properties.merge_mode is MergeMode.CUSTOM
    assert table.properties.raw[HOOK] == "tests.merge_hooks:add"


def test_the_recorded_hook_is_never_imported(tmp_path: Path) -> None:
    """A table file must not decide which code runs: each reader and writer names it anew."""
    HoodieTable(str(tmp_path), {**BY_PATH, TYPE: "MERGE_ON_READ"}).upsert(fare(("a", 1.0)))
    before = tree(tmp_path)
    other = HoodieTable(str(tmp_path))
    with pytest.raises(OptionError, match=HOOK) as caught:
        other.read()
    assert caught.value.key == HOOK
    with pytest.raises(OptionError, match=HOOK):
        other.upsert(fare(("a", 1.0)))
    assert tree(tmp_path) == before
    assert fares(HoodieTable(str(tmp_path), {HOOK: BY_PATH[HOOK]})) == {"a": 1.0}


def test_base_files_alone_are_read_without_the_hook(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), BY_PATH).upsert(fare(("a", 1.0)))
    assert fares(HoodieTable(str(tmp_path))) == {"a": 1.0}


@pytest.mark.parametrize("kind", TYPES)
def test_a_hook_that_fails_leaves_the_table_as_it_was(tmp_path: Path, kind: str) -> None:
    options = {**OPTIONS, TYPE: kind}
    table = HoodieTable(str(tmp_path), options, merge_hook=add)
    table.upsert(fare(("a", 1.0)))
    broken = HoodieTable(str(tmp_path), options, merge_hook=fails)
    with pytest.raises(MergeHookError, match=r"tests.merge_hooks:fails .*'a'") as caught:
        broken.upsert(fare(("a", 1.0), ("a", 1.0)))
    assert isinstance(caught.value.__cause__, KeyError)
    assert fares(table) == {"a": 1.0}
    table.upsert(fare(("a", 1.0)))
    assert fares(table) == {"a": 2.0}


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({MODE: "CUSTOM"}, HOOK),
        ({MODE: "CUSTOM", HOOK: "tests.merge_hooks:no_such_hook"}, HOOK),
        ({MODE: "COMMIT_TIME_ORDERING", HOOK: "tests.merge_hooks:add"}, MODE),
    ],
)
def test_options_that_give_no_hook_are_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, str], key: str
) -> None:
    table = HoodieTable(str(tmp_path / "t"), {**TRIPS, **options})
    with pytest.raises(OptionError) as caught:
        table.upsert(fare(("a", 1.0)))
    assert caught.value.key == key
    assert not (tmp_path / "t").exists()


def test_a_hook_is_refused_by_a_table_that_has_none(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(fare(("a", 1.0)))
    with pytest.raises(OptionError, match="EVENT_TIME_ORDERING"):
        HoodieTable(str(tmp_path), {HOOK: BY_PATH[HOOK]}).upsert(fare(("a", 1.0)))


def test_a_compaction_merges_by_the_hook_as_reads_do(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**BY_PATH, TYPE: "MERGE_ON_READ"})
    table.upsert(fare(("a", 1.0), ("b", 2.0), ("c", 3.0)))
    table.upsert(fare(("a", 4.0), ("b", -2.0), ("d", 5.0)))
    table.upsert(pa.concat_tables([fare(("c", 0.0), deleted="c"), fare(("c", 7.0))]))
    before = {"a": 5.0, "c": 7.0, "d": 5.0}
    assert fares(table) == before
    with pytest.raises(OptionError, match="merge"):
        HoodieTable(str(tmp_path), {TYPE: "MERGE_ON_READ"}).compact()
    failing = HoodieTable(str(tmp_path), {**OPTIONS, TYPE: "MERGE_ON_READ"}, merge_hook=fails)
    with pytest.raises(MergeHookError):
        failing.compact()
    assert fares(table) == before
    (done,) = table.compact()
    assert fares(table) == before
    assert len(list(tmp_path.glob(f"x/*_{done.instant_time}.parquet"))) == 1
    table.upsert(fare(("a", -5.0), ("c", 1.0)))
    assert fares(table) == {"c": 8.0, "d": 5.0}
    table.compact()
    assert fares(table) == {"c": 8.0, "d": 5.0}

"""`HoodieTable.alter` changes columns without a new data file, and rows follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count, product
from random import Random

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, TableAlteration
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    HoodieError,
    OptionError,
    ReplayMismatchError,
    SchemaError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.table_alteration import altered
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.alteration import AlteredColumns
from hoodie_ds.testing import CRASHES, MemoryStorage, sweep
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.transaction.open_instant import open_instant
from tests.faults.writers import BESIDE_OTHERS, NoPauses, Place
from tests.schema_on_read import ROWS, alter, stored_history, write_without_option, written
from tests.schema_on_read import TRIPS as COLUMNS
from tests.tables import TRIPS, TYPE, TYPES, VERSION, trips
from tests.tiers import by_day

COW, MOR = TYPES
INDEX = "hoodie.index.type"
DUE = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
}
PLACES = [f"{kind} {version}" for kind, version in product(TYPES, "689")]
NAMES = ["id", "city", "ts", "fare"]


@pytest.fixture(params=by_day(PLACES, {f"{COW} 9", f"{MOR} 6"}))
def place(request: pytest.FixtureRequest) -> Place:
    return written(*request.param.split()).copy()


CHANGES: dict[str, tuple[Callable[[TableAlteration], TableAlteration], list[str], list[object]]] = {
    "rename": (lambda to: to.rename("fare", "cost"), ["id", "city", "ts", "cost"], [1.0, 2.0]),
    "drop": (lambda to: to.drop("fare"), NAMES[:3], [1, 1]),
    "drop and add": (lambda to: to.drop("fare").add("fare", pa.int32()), NAMES, [None, None]),
    "add": (lambda to: to.add("tip", pa.int64()), [*NAMES, "tip"], [None, None]),
    "add first": (lambda to: to.add("tip", pa.string(), first=True), ["tip", *NAMES], [1.0, 2.0]),
    "move": (lambda to: to.move("fare", after="id"), ["id", "fare", "city", "ts"], [1, 1]),
    "retype": (lambda to: to.retype("fare", pa.string()), NAMES, ["1.0", "2.0"]),
    "comment": (lambda to: to.comment("fare", "in euros"), NAMES, [1.0, 2.0]),
    "swap": (
        lambda to: to.add("n", pa.int32()).rename("n", "a").rename("fare", "n").rename("a", "fare"),
        ["id", "city", "ts", "n", "fare"],
        [None, None],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_have_the_columns_of_now(place: Place, change: str) -> None:
    make, names, values = CHANGES[change]
    files = _data_files(place.storage)
    dry = make(place.table.alter()).execute(dry=True)
    assert place.table.schema.names[5:] == NAMES
    done = make(place.table.alter()).execute()
    assert (dry.after, dry.before.names) == (done.after, NAMES)
    assert done.instant_time == place.table.timeline.commits[-1].time
    assert _data_files(place.storage) == files
    assert place.table.schema.names[5:] == done.after.names == names
    assert [row[-1] for row in place.read("id", names[-1])] == values
    assert [one["version_id"] for one in stored_history(place.storage)] == [
        *(int(done.instant_time), 0)
    ]
    rows = place.table.read(columns=names).to_pylist()
    again = pa.Table.from_pylist([row | {"ts": 9} for row in rows], schema=done.after)
    place.table.upsert(again)
    assert sorted(place.table.read(columns=names).to_pylist(), key=str) == sorted(
        again.to_pylist(), key=str
    )
    assert place.table.inspect.verify()


def _data_files(storage: MemoryStorage) -> set[str]:
    return {path for path in storage.files if not path.startswith(".hoodie")}


def test_what_is_so_already_makes_no_commit(place: Place) -> None:
    before = place.storage.files
    assert not place.table.alter().move("fare", after="ts").execute()
    assert place.storage.files == before


def test_a_commit_says_that_it_alters_and_a_comment_stays(place: Place) -> None:
    place.table.alter().comment("fare", "in euros").execute()
    commit = read_commit(place.storage, place.table.timeline.commits[-1])
    assert commit.operation_type == "ALTER_SCHEMA"
    place.table.upsert(trips(ROWS[0]))
    commit = read_commit(place.storage, place.table.timeline.commits[-1])
    for key in ("schema", "latest_schema"):
        assert commit.extra[key].count("in euros") == 1


def test_a_numbered_alteration_is_made_once(place: Place) -> None:
    once = {
        "hoodie.datasource.write.streaming.checkpoint.identifier": "nightly",
        "hoodie.datasource.write.batch.identifier": "7",
    }
    change = place.table.alter().rename("fare", "cost").add("tip", pa.float64())
    first = change.execute(once)
    place.table.upsert(place.table.read(columns=first.after.names))
    before, names = place.storage.files, place.table.schema.names
    for dry in (True, False):
        again = change.execute(once, dry=dry)
        assert (again.already_committed, bool(again), again.instant_time) == (True, False, None)
        assert again.after.names == again.before.names == names[5:]
        assert "committed already" in str(again)
        with pytest.raises(ReplayMismatchError, match="came again with"):
            place.table.alter().rename("cost", "price").execute(once, dry=dry)
    assert place.storage.files == before
    place.table.rollback()
    place.table.rollback(first.instant_time)
    assert change.execute(once).after == first.after


def test_a_value_that_does_not_fit_tells_readers_what_to_do(place: Place) -> None:
    place.table.alter().add("day", pa.string()).execute()
    place.table.update({"day": "2024-02-30", "ts": 2}, where="id = '1'")
    place.table.alter().retype("day", pa.date32()).execute()
    with pytest.raises(SchemaError, match=r"'day' is string.*alter the table's column") as error:
        place.table.read()
    assert "before the write" not in str(error.value)
    place.table.alter().retype("day", pa.string()).execute()
    assert place.read("id", "day") == [("1", "2024-02-30"), ("2", None)]


REFUSED: dict[str, Callable[[TableAlteration], TableAlteration]] = {
    "no column 'x'": lambda to: to.drop("x"),
    "no column '_hoodie_record_key'": lambda to: to.drop("_hoodie_record_key"),
    "'id' cannot be renamed: keys": lambda to: to.rename("id", "key"),
    "'city' cannot be dropped: keys": lambda to: to.drop("city"),
    "'ts' cannot be retyped: keys": lambda to: to.retype("ts", pa.string()),
    "'fare' cannot be renamed: 'ts' is there": lambda to: to.rename("fare", "ts"),
    "column 'ts' is there already": lambda to: to.add("ts", pa.int64()),
    "differ in nothing but case": lambda to: to.add("FARE", pa.int64()),
    "is no name": lambda to: to.add("a b", pa.int64()),
    "is double and cannot become int": lambda to: to.retype("fare", pa.int32()),
    "is double and cannot become a struct": lambda to: to.retype("fare", pa.struct({"a": "int32"})),
    "a type that Hudi 1.2 does not read back": lambda to: to.add("at", pa.timestamp("us")),
    "'fare' is no struct": lambda to: to.add("fare.x", pa.int64()),
    "'fare.x' is no struct": lambda to: to.add("fare.x.y", pa.int64()),
    "cannot come after 'x'": lambda to: to.move("fare", after="x"),
    "either to the first place or after another": lambda to: to.move("fare"),
    "no column 'cost'": lambda to: to.drop("cost").rename("fare", "cost"),
    "no change": lambda to: to,
}


@pytest.mark.parametrize("error", REFUSED)
def test_what_cannot_be_changed_is_refused(error: str) -> None:
    place = written(COW, "9")
    before = place.storage.files
    with pytest.raises(SchemaError, match=error):
        REFUSED[error](place.table.alter()).execute()
    assert place.storage.files == before


def test_tables_that_cannot_be_altered_are_refused(place: Place) -> None:
    change = place.table.alter().drop("fare")
    with pytest.raises(OptionError, match="batches"):
        change.execute({"hoodie.streaming.batches.per.commit": "2"})
    alter(place.storage, COLUMNS, [*COLUMNS, (9, "extra", "string")])
    write_without_option(place.storage)
    before = place.storage.files
    with pytest.raises(UnsupportedTableError, match="taken the numbers away"):
        change.execute()
    assert place.storage.files == before


def test_an_alteration_that_was_taken_back_can_be_made_again(place: Place) -> None:
    change = place.table.alter().rename("fare", "cost")
    place.table.rollback(change.execute().instant_time)
    assert place.read("id", "fare") == [("1", 1.0), ("2", 2.0)]
    again = change.execute()
    assert place.read("id", "cost") == [("1", 1.0), ("2", 2.0)]
    versions = [one["version_id"] for one in stored_history(place.storage)]
    assert versions == [int(str(again.instant_time)), 0]


def test_fields_of_structs_are_altered_by_their_paths() -> None:
    place = Place({**TRIPS, TYPE: COW, VERSION: "9"})
    kind = pa.struct({"x": pa.int32(), "y": pa.string()})
    rows = trips(ROWS[0])
    for name, value, held in (
        ("at", {"x": 1, "y": "a"}, kind),
        ("items", [{"x": 2, "y": "b"}], pa.list_(kind)),
        ("prices", [("p", {"x": 3, "y": "c"})], pa.map_(pa.string(), kind)),
    ):
        rows = rows.append_column(name, pa.array([value], held))
    place.table.upsert(rows)
    change = place.table.alter().rename("at.x", "lon").retype("at.lon", pa.float64())
    change.drop("items.element.y").add("items.element.z", pa.string(), first=True).execute()
    place.table.alter().rename("prices.value.x", "cost").comment("prices.value.y", "why").execute()
    place.table.alter().add("prices.value.of", pa.list_(pa.int32())).execute()
    at, items, prices = {"lon": 1.0, "y": "a"}, [{"z": None, "x": 2}], ("p", {"cost": 3, "y": "c"})
    prices[1]["of"] = None
    assert place.read("at", "items", "prices") == [(at, items, [prices])]
    assert place.table.inspect.verify()
    place.table.alter().drop("items.element.z").execute()
    with pytest.raises(SchemaError, match="the last one"):
        place.table.alter().drop("items.element.x").execute()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_a_model(kind: str, seed: int) -> None:
    """Random changes, writes and services, against rows as Python has them."""
    random, names = Random(f"{kind} {seed}"), [*NAMES]
    place = written(kind, "689"[seed]).copy()
    model = {row[0]: dict(zip(NAMES, row, strict=True)) for row in ROWS}
    for number in range(14):
        free, others = f"c{random.randrange(4)}", names[3:]
        match random.choice(["add", "rename", "drop", "upsert", "upsert", "delete", "service"]):
            case "add" if free not in names:
                place.table.alter().add(free, pa.float64()).execute()
                names.append(free)
                model = {key: row | {free: None} for key, row in model.items()}
            case "rename" if others and free not in names:
                name = random.choice(others)
                place.table.alter().rename(name, free).execute()
                names[names.index(name)] = free
                for row in model.values():
                    row[free] = row.pop(name)
            case "drop" if others:
                name = random.choice(others)
                place.table.alter().drop(name).execute()
                names.remove(name)
                for row in model.values():
                    del row[name]
            case "upsert":
                key = random.choice("123")
                row = dict.fromkeys(names, float(number)) | {
                    "id": key,
                    "city": "x",
                    "ts": number + 2,
                }
                types = [place.table.schema.field(name) for name in names]
                place.table.upsert(pa.Table.from_pylist([row], schema=pa.schema(types)))
                model[key] = row
            case "delete" if len(model) > 1:
                del model[key := random.choice([*model])]
                place.table.delete(where=f"id = '{key}'")
            case "service" if kind == MOR:
                place.table.compact(DUE)
        found = {row["id"]: row for row in place.table.read(columns=names).to_pylist()}
        assert found == model
    assert place.table.inspect.verify()


def test_batches_without_an_added_column_keep_its_values(place: Place) -> None:
    """Also once it has another name; of one that was dropped nothing is kept."""
    place.table.alter().add("tip", pa.float64()).add("gone", pa.float64()).execute()
    place.table.update({"tip": 0.5, "gone": 1.0, "ts": 2}, where="id = '1'")
    place.table.alter().rename("tip", "extra").drop("gone").execute()
    table = HoodieTable("/t", place.opts, storage=place.storage, clock=place.clock, ids=place.ids)
    table.upsert(trips(("1", "x", 3, 3.0), ("3", "x", 1, 1.0)))
    assert place.read("id", "fare", "extra") == [
        ("1", 3.0, 0.5),
        ("2", 2.0, None),
        ("3", 1.0, None),
    ]


def test_a_batch_with_the_former_name_is_refused(place: Place) -> None:
    place.table.alter().rename("fare", "cost").execute()
    table = HoodieTable("/t", place.opts, storage=place.storage, clock=place.clock, ids=place.ids)
    with pytest.raises(SchemaError, match="'cost' of the table is missing"):
        table.upsert(trips(ROWS[0]))


STATISTICS = {
    f"hoodie.metadata.index.{name}.enable": "true" for name in ("column.stats", "partition.stats")
}


def test_statistics_by_names_are_not_beside_files_of_other_names(place: Place) -> None:
    """Hudi takes a column that a file has no statistics of for null in all of its rows."""
    place.table.create_metadata_table(STATISTICS)
    place.table.alter().add("tip", pa.float64()).move("fare", first=True).execute()
    before = place.storage.files
    rename = place.table.alter().rename("fare", "cost")
    with pytest.raises(UnsupportedTableError, match="--partition column_stats` drops"):
        rename.execute()
    assert place.storage.files == before
    place.table.drop_metadata_table(["column_stats"])
    assert rename.execute()
    before = place.storage.files
    with pytest.raises(UnsupportedTableError, match=r"'fare' is 'cost'.*column.stats.enable out"):
        place.table.create_metadata_table(STATISTICS)
    assert place.storage.files == before
    place.table.upsert(place.table.read(columns=[*NAMES[:3], "cost", "tip"]))
    assert place.table.inspect.verify()


def test_a_delta_log_has_no_columns_under_other_names(place: Place) -> None:
    place.opts |= {"hoodie.py.delta.sync": "true"}
    before = place.storage.files
    with pytest.raises(UnsupportedTableError, match=r"'fare' is 'cost'.*leave hoodie.py.delta"):
        place.table.alter().rename("fare", "cost").execute()
    assert place.storage.files == before
    assert place.table.alter().add("tip", pa.float64()).execute()
    log = sorted(path for path in place.storage.files if path.startswith("_delta_log/"))
    assert b"tip" in place.storage.read(log[-1])


@pytest.mark.parametrize("name", ["cost", "fare"])
def test_statistics_of_tables_that_hudi_altered_are_kept(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file's by the names and types of its time, which is all that Hudi has there, too."""
    place.table.create_metadata_table(STATISTICS)
    monkeypatch.setattr("hoodie_ds.sink.table_alteration.check_named", lambda *_: None)
    place.table.alter().retype("fare", pa.string()).execute()
    if name != "fare":
        place.table.alter().rename("fare", name).execute()
    place.table.update({name: "5.0", "ts": 2}, where="id = '1'")
    (found,) = place.table.read(columns=["id"], filter=(name, "<", "5.0")).to_pylist()
    assert found == {"id": "2"}
    assert place.table.inspect.verify()
    assert not place.table.repair_metadata_table(dry=True)


def test_a_write_that_began_before_is_a_conflict(place: Place) -> None:
    place.opts |= BESIDE_OTHERS
    batch = place.begin(trips(("1", "x", 2, 3.0)))
    message = batch.write()
    place.table.alter().rename("fare", "cost").execute()
    with pytest.raises(WriteConflictError, match="ALTER TABLE"):
        batch.writer.commit([message])
    assert place.read("id", "cost") == [("1", 1.0), ("2", 2.0)]


@pytest.mark.parametrize("other", ["write", "new column", "clustering", "alteration"])
def test_what_is_later_than_an_alteration_is_a_conflict(other: str) -> None:
    """A file of a later time, made with the former names, would be read by the new ones."""
    place = Place({**TRIPS, TYPE: COW, VERSION: "9", INDEX: "SIMPLE"} | BESIDE_OTHERS)
    place.table.upsert(trips(*ROWS))
    place.table.upsert(trips(("1", "x", 2, 1.0)))
    options = WriteOptions.parse({**place.opts, **DUE, "path": "/t"})
    writer = Coordinator(
        replace(options, allow_empty_commit=True), place.storage, place.clock, place.ids, NoPauses()
    )
    batch = writer.begin_alteration(
        partial(altered, [partial(AlteredColumns.rename, path="fare", name="cost")])
    )
    assert batch is not None
    message = write_task(batch, TaskId(), None, (), sole_writer=True)
    begun = replace(message, instant_time=open_instant(batch.pending))
    place.clock.advance(10)
    match other:
        case "write":
            place.table.upsert(trips(("3", "y", 1, 3.0)))
        case "new column":
            place.table.upsert(trips(("3", "y", 1, 3.0)).append_column("tip", pa.array([1.0])))
        case "clustering":
            context = ServiceContext(options, place.storage, place.clock, place.ids)
            assert Clusterer(context).schedule()
        case _:
            place.table.alter().add("tip", pa.int32()).execute()
    with pytest.raises(WriteConflictError, match="not committed and can be run again"):
        writer.commit([begun])
    assert "fare" in place.table.schema.names


@pytest.mark.parametrize("version", ["6", pytest.param("9", marks=pytest.mark.slow)])
def test_an_alteration_is_made_or_not(version: str) -> None:
    start, every = written(MOR, version).storage, count()

    def at(storage: Storage) -> Place:
        there = Place({**TRIPS, TYPE: MOR, VERSION: version})
        there.storage = storage  # type: ignore[assignment]
        return there

    def check(left: MemoryStorage, raised: BaseException | None) -> None:
        name = at(left).table.schema.names[-1]
        assert name in (["cost"] if raised is None else ["fare", "cost"])
        assert at(left).read("id", name) == [("1", 1.0), ("2", 2.0)]
        if next(every) % 7 == 0:
            at(left).table.update({"ts": 9}, where="id = '3'")  # recovers, and changes no row
            name = at(left).table.schema.names[-1]
            assert at(left).table.schema.names[-2:] == ["ts", name]
            at(left).table.alter().rename(name, "price").execute()
            assert at(left).read("id", "price") == [("1", 1.0), ("2", 2.0)]

    def play(storage: Storage) -> None:
        at(storage).table.alter().rename("fare", "cost").execute()

    assert sweep(start, play, check, CRASHES) > 20


def test_a_table_without_commits_has_nothing_to_alter() -> None:
    place = Place({**TRIPS, VERSION: "9"})
    with pytest.raises(HoodieError, match="no Hudi table"):
        place.table.alter().drop("fare").execute()

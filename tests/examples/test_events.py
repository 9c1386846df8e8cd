"""The demo's events: complete, out of order where they claim to be, and laid down once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from examples.flights import events as flights
from tests.rows import assert_same_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flights") / "events"
    flights.write_events(path)
    return path


@pytest.fixture(scope="module")
def events(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.iterdir())])


@pytest.mark.slow
def test_modification_times_follow_the_names(folder: Path) -> None:
    paths = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
    assert [path.name for path in paths] == [f"events-{n:02}.parquet" for n in range(14)]


@pytest.mark.slow
def test_a_second_call_writes_nothing(folder: Path) -> None:
    before = [(path, path.stat().st_ino) for path in sorted(folder.iterdir())]
    flights.write_events(folder)
    assert [(path, path.stat().st_ino) for path in sorted(folder.iterdir())] == before


@pytest.mark.slow
def test_every_flight_ends_as_the_data_set_says(folder: Path) -> None:
    # 336,776 flights, of which 8,255 have no departure and 458 more no arrival time
    final = flights.expected(folder)
    counts = dict(zip(*final.column("status").value_counts().flatten(), strict=True))
    assert {str(status): count.as_py() for status, count in counts.items()} == {
        "arrived": 328_063,
        "cancelled": 8_255,
        "departed": 458,
    }
    assert final.group_by(list(flights.KEY)).aggregate([]).num_rows == 336_776


@pytest.mark.slow
def test_late_events_would_win_if_arrival_counted(folder: Path, events: pa.Table) -> None:
    by_arrival = events.group_by(list(flights.KEY), use_threads=False).aggregate(
        [("event_ts", "last"), ("event_ts", "max")]
    )
    late = pc.less(by_arrival.column("event_ts_last"), by_arrival.column("event_ts_max"))
    assert pc.sum(late).as_py() > 5_000


@pytest.mark.slow
def test_some_events_come_twice_and_equal_times_mean_equal_rows(events: pa.Table) -> None:
    names = [*flights.KEY, "event_ts"]
    moments = events.group_by(names).aggregate([]).num_rows
    assert moments < events.num_rows
    assert events.group_by(flights.EVENTS.names).aggregate([]).num_rows == moments


@pytest.mark.slow
def test_the_expected_table_agrees_with_a_dictionary(folder: Path, tmp_path: Path) -> None:
    # one carrier in the first 3 files alone, where many flights are still on their way
    for path in sorted(folder.iterdir())[:3]:
        pq.write_table(pq.read_table(path, filters=[("carrier", "=", "AA")]), tmp_path / path.name)
    model: dict[tuple[object, ...], dict[str, object]] = {}
    for path in sorted(tmp_path.iterdir()):
        for row in pq.read_table(path).to_pylist():
            key = tuple(row[name] for name in flights.KEY)
            if key not in model or row["event_ts"] >= model[key]["event_ts"]:
                model[key] = row
    wanted = pa.Table.from_pylist(list(model.values()), schema=flights.EVENTS)
    assert_same_rows(flights.expected(tmp_path), wanted, flights.KEY)


def test_counts_by_partition_and_status() -> None:
    table = pa.table({"month": [2, 1, 2], "status": ["b", "a", "b"], "more": [0, 0, 0]})
    assert flights.by_partition_and_status(table).to_pylist() == [
        {"month": 1, "status": "a", "rows": 1},
        {"month": 2, "status": "b", "rows": 2},
    ]

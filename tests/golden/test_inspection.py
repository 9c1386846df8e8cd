"""What is told of tables that Apache Hudi wrote agrees with what its own reader answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, TimelineError
from tests.golden.golden_tables import (
    expected_rows,
    golden_names,
    notation,
    queries,
    unzip_table,
)

AS_OF = "as.of.instant"
PAST = [
    name
    for name in golden_names()
    if any(AS_OF in q.options for q in queries(name))
    and not any(one in name for one in ("beyond", "altered"))
]
KEY, PARTITION = "_hoodie_record_key", "_hoodie_partition_path"
Rows = dict[tuple[str, str], Any]


def past(name: str) -> dict[str, list[dict[str, Any]]]:
    """Hudi's rows as of each instant that it answered for."""
    return {q.options[AS_OF]: q.rows for q in queries(name) if AS_OF in q.options and not q.error}


def by_key(rows: list[dict[str, Any]]) -> Rows:
    return {
        (row[PARTITION], row[KEY]): {n: v for n, v in row.items() if not n.startswith("_hoodie")}
        for row in rows
    }


def shown_at(table: HoodieTable, time: str) -> pa.Table | None:
    """The table as of a time; None if cleans took files that it had."""
    try:
        rows = list(table.inspect.rows(at=time))
    except TimelineError as error:
        if "is no completed write" in str(error) or " needs " in str(error):
            return None
        raise
    return pa.concat_tables([table.schema.empty_table(), *rows], promote_options="permissive")


@pytest.mark.parametrize("name", PAST)
def test_a_table_as_of_an_instant_and_what_changed_since(name: str, tmp_path: Path) -> None:
    table = HoodieTable(unzip_table(name, tmp_path))
    now = by_key(expected_rows(name))
    compared = 0
    for time, rows in past(name).items():
        found = shown_at(table, time)
        if found is None:
            continue
        before = by_key(rows)
        assert by_key([notation(row) for row in found.to_pylist()]) == before
        changes = table.inspect.diff(time)
        both = before.keys() & now.keys()
        assert changes.inserted == len(now.keys() - before.keys())
        assert changes.deleted == len(before.keys() - now.keys())
        assert changes.updated == sum(before[key] != now[key] for key in both)
        after = [r for r in changes.rows.to_pylist() if r["change"] in ("insert", "update_after")]
        for row in map(notation, after):
            assert {n: row[n] for n in now[row[PARTITION], row[KEY]]} == now[
                row[PARTITION], row[KEY]
            ]
        compared += 1
    assert compared


@pytest.mark.parametrize("name", ["v6_cow_history", "v6_mor_history", "v9_cow_history",
                                  "v9_mor_history", "v9_cow_archived", "v6_mor_restored_and_on",
                                  "v9_mor_evolved"])  # fmt: skip
def test_the_life_of_every_key_ends_with_its_row(name: str, tmp_path: Path) -> None:
    table = HoodieTable(unzip_table(name, tmp_path))
    now = by_key(expected_rows(name))
    lived = {key: 0 for _, key in now}
    for rows in past(name).values():
        lived.update((key, 0) for _, key in by_key(rows))
    for key in lived:
        events = table.inspect.trace(key)
        rows = [row for (_, k), row in now.items() if k == key]
        located = table.inspect.locate(key)
        assert [notation(dict(found.row)) for found in located] == rows
        if not rows:
            assert not events or events[-1].what in ("deleted", "replaced")
            continue
        last = next(e for e in reversed(events) if e.row is not None)
        assert notation(dict(last.row or {})).items() <= rows[0].items()
        assert [e.time for e in events] == sorted(e.time for e in events)


def test_the_life_of_a_key_has_the_columns_that_were_updated(tmp_path: Path) -> None:
    table = HoodieTable(unzip_table("v9_mor_columns_updated", tmp_path))
    first, *updates = (event.row for event in table.inspect.trace("k02"))
    assert first is not None
    assert {"id", "city", "name", "qty", "ts"} == first.keys()
    assert updates == [{"qty": 7, "ts": 20}, {"name": "sql", "ts": 15}]


@pytest.mark.parametrize("name", golden_names())
def test_every_table_can_be_looked_into(name: str, tmp_path: Path) -> None:
    inspect = HoodieTable(unzip_table(name, tmp_path)).inspect
    overview, files = inspect.show(), inspect.files()
    assert overview.version == int(name[1])
    assert overview.commits == len(inspect.commits(None, archived=False))
    assert overview.pending == len(inspect.plans())
    assert overview.files == files.total
    written = inspect.timeline(None, state="completed", archived=False)
    assert len(written) + overview.pending == len(inspect.timeline(None, archived=False))
    history = inspect.schema_history()
    assert not history or history[-1].columns == overview.columns

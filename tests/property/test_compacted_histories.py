"""Random histories of writes, plans, compactions and cleans against a dictionary.

Columns become wider on the way, and batches of older writers come in narrower types.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from hoodie_ds.columns.meta_columns import FILE_NAME
from hoodie_ds.testing.checker import check_table
from tests.faults.writers import Place
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips
from tests.tiers import AT_NIGHT
from tests.unit.services.compaction.compacted_tables import compactor

BLOOM = {BUCKETS: "", "hoodie.index.bloom.num_entries": "100"}
TABLES = {
    "buckets": {},
    "buckets, avro": {"hoodie.logfile.data.block.format": "avro"},
    "buckets, commit time": {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
    "bloom": {**BLOOM, "hoodie.index.type": "BLOOM"},
    "global bloom": {**BLOOM, "hoodie.index.type": "GLOBAL_BLOOM"},
}
WIDER = {
    "count": [pa.int32(), pa.int64()],
    "ratio": [pa.float32(), pa.float64()],
}
"""Types of columns, each of which may become the next."""
SEEDS = [0, *(pytest.param(n, marks=pytest.mark.slow if n < 2 else AT_NIGHT) for n in range(1, 5))]
"""Tables of odd seeds are of version 9."""
_STEPS = 16


class History:
    """A table, and the rows that it ought to have."""

    def __init__(self, name: str, seed: int) -> None:
        options = {**TRIPS, TYPE: "MERGE_ON_READ", VERSION: "69"[seed % 2], **TABLES[name]}
        self.place = Place({key: text for key, text in options.items() if text})
        self.is_global = name.startswith("global")
        self.draw = Random(f"{name} {seed}")
        self.rows: dict[tuple[str, str], tuple[int, float]] = {}
        self.number = 0
        self.widths = dict.fromkeys(WIDER, 0)
        self.upsert()

    def upsert(self) -> None:
        """Some keys, in any of three partitions."""
        self.number += 1
        keys = self.draw.sample(range(12), self.draw.randint(1, 6))
        batch = [(str(key), self.draw.choice("xyz")) for key in keys]
        rows = trips(*((*one, self.number, float(self.number)) for one in batch))
        self.place.table.upsert(self._widened(rows))
        for key, city in batch:
            if self.is_global:
                self.rows = {one: row for one, row in self.rows.items() if one[0] != key}
            self.rows[key, city] = self.number, float(self.number)

    def _widened(self, rows: pa.Table) -> pa.Table:
        """With further columns, in types up to one that is wider than the table's."""
        for name, types in WIDER.items():
            width = self.draw.randint(0, min(self.widths[name] + 1, len(types) - 1))
            self.widths[name] = max(self.widths[name], width)
            rows = rows.append_column(name, pa.array([self.number] * len(rows), types[width]))
        return rows

    def delete(self) -> None:
        """Two of the keys that are there."""
        gone = self.draw.sample(sorted(self.rows), min(2, len(self.rows)))
        if gone:
            keys = trips(*((*one, self.number, None) for one in gone))
            self.place.table.delete(keys.select(["id", "city"]))
        self.rows = {one: row for one, row in self.rows.items() if one not in gone}

    def plan(self) -> None:
        """Plan a compaction, to be carried out later."""
        before = self._stored()
        compactor(self.place).schedule()
        assert self._stored() == before

    def compact(self) -> None:
        """Carry out what is planned, and more; then maybe clean."""
        before = self._stored()
        worker = compactor(self.place)
        for instant in self.place.table.timeline.pending_compactions:
            worker.run(instant)
        if self.draw.random() < 0.5:
            self.place.table.compact()
        if self.draw.random() < 0.5:
            self.place.table.clean()
        assert self._stored() == before

    def check(self) -> None:
        """The rows are those of the dictionary, and the files what commits say."""
        found = {(key, city): (ts, fare) for key, city, ts, fare in self.place.rows()}
        assert found == self.rows
        wide = self.place.table.read(columns=["ts", *WIDER])
        for name, types in WIDER.items():
            assert wide[name].equals(wide["ts"].cast(types[self.widths[name]])), name
        assert not check_table(self.place.storage.files)

    def _stored(self) -> list[str]:
        """All columns but the name of the file, commit times too."""
        rows = self.place.table.read().drop_columns([FILE_NAME])
        return sorted(map(str, rows.to_pylist()))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TABLES)
def test_a_history_with_compactions_is_that_of_a_dictionary(name: str, seed: int) -> None:
    history = History(name, seed)
    steps = (history.upsert, history.delete, history.plan, history.compact)
    for step in history.draw.choices(steps, weights=(5, 1, 2, 2), k=_STEPS):
        history.place.clock.advance(history.draw.choice([1, 1000, 60_000]))
        step()
        history.check()

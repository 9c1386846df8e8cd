"""Queries of ranges, changes and earlier moments over tables of ours, by us and by Apache Hudi."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import TimelineError
from hoodie_ds.reader.query import open_query
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.storage.connect import storage_to_read
from tests.golden.golden_tables import CDC_QUERY, INCREMENTAL_QUERY, READ_OPTIMIZED_QUERY
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError
from tests.query_histories import History, content
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

READ: Final = "hoodie.datasource.read."
KINDS: Final = (
    *("upsert", "upsert", "delete", "compact", "upsert", "cluster", "overwrite_partition"),
    *("upsert", "rollback", "upsert", "upsert", "upsert", "clean", "delete_partitions"),
    *("upsert", "compact", "restore", "upsert", "overwrite", "upsert"),
)
COW, MOR = TYPES
BY_DAY: Final = {("6", COW), ("6", MOR), ("9", MOR)}
Query = Mapping[str, str]


class Asked:
    """A table of ours that both are asked about."""

    def __init__(self, path: Path, version: str, kind: str, jvm: JvmHudi) -> None:
        self.path, self.jvm = path, jvm
        chance = random.Random(f"{version}/{kind}")
        options = {**TRIPS, TYPE: kind, VERSION: version, "hoodie.table.cdc.enabled": "true"}
        if (kind == MOR) == (version == "8"):
            options = {**options, "hoodie.index.type": "BLOOM"}
            del options[BUCKETS]
        self.history = History(path, options, chance)
        for number, what in enumerate(KINDS, 1):
            self.history.do(what, number)
        assert self.history.done.keys() == set(KINDS), "something was refused"
        assert self.history.retained > "000", "nothing was cleaned"
        # Hudi fails on changes of log files in version 6: it takes its own JSON for Avro.
        self.tells_changes = (version, kind) != ("6", MOR)

    def queries(self) -> list[Query]:
        """The latest rows, moments, each commit alone, and ranges of several; few are cleaned."""
        first, *moments = self.history.moments
        cleaned = [m for m in moments if m.time < self.history.retained]
        moments = moments[max(len(cleaned) - 1, 0) :]
        found: list[Query] = [{}, READ_OPTIMIZED_QUERY]
        found += [{"as.of.instant": moment.time} for moment in moments]
        ranges = [*pairwise(moments), (first, moments[-1]), (moments[1], moments[-1])]
        for begin, end in ranges:
            bounds = {
                f"{READ}begin.instanttime": begin.bound,
                f"{READ}end.instanttime": end.bound,
            }
            found.append({**INCREMENTAL_QUERY, **bounds})
            found += [{**CDC_QUERY, **bounds}] if self.tells_changes else []
        return found

    def same(self, query: Query) -> bool:
        """Ask both; whether there was an answer, which is the same then."""
        try:
            theirs = self.jvm.read(self.path, query)
        except JvmHudiError:
            with pytest.raises(TimelineError):
                self.ours(query)
            return False
        is_of_changes = CDC_QUERY.items() <= query.items()
        try:
            found = self.ours(query)
        except TimelineError:  # Hudi tells what is left of changes whose files were cleaned
            assert is_of_changes
            assert query[f"{READ}begin.instanttime"] < self.history.retained
            return False
        if is_of_changes:
            assert _changes(found) == _changes(theirs)
        else:
            assert_same_rows(found, theirs)
        return True

    def ours(self, query: Query) -> pa.Table:
        options = ReadOptions.parse({**query, "path": str(self.path)})
        return Scanner(open_query(storage_to_read(options), options)).to_table()


def _changes(rows: pa.Table) -> Counter[str]:
    return Counter(
        json.dumps([row["op"], row["ts_ms"], *(_image(row[side]) for side in ("before", "after"))])
        for row in rows.to_pylist()
    )


def _image(text: str | None) -> Any:
    """Columns of a row: some of Hudi's images have meta columns or nulls, and some have not."""
    found = json.loads(text or "null") or {}
    return sorted((k, v) for k, v in found.items() if v is not None and k[:8] != "_hoodie_")


@pytest.mark.parametrize(("version", "kind"), by_day(product("689", TYPES), BY_DAY))
def test_both_answer_alike(version: str, kind: str, jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    asked = Asked(tmp_path / "t", version, kind, jvm_hudi)
    queries = asked.queries()
    answered = [query for query in queries if asked.same(query)]
    assert len(answered) > len(queries) / 2
    assert content(asked.ours({})) == asked.history.rows

"""Random merge-on-read tables: what footers rule out changes no answer of a plain merge."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, index, reader, sink, slices
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.slices.merge_outcomes import merge_outcomes
from tests.golden.histories import BLOCKS
from tests.merge_hooks import HOOK, MODE, add
from tests.partial_updates import without_columns
from tests.recombined import recombined
from tests.tables import BUCKETS, ORDERING, PARTITION, TRIPS, TYPE, VERSION, found, trips
from tests.tiers import by_day

VIRTUAL = "hoodie.populate.meta.fields"
RULES = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "hook", "virtual keys")
STORED = 400


def options_of(draw: random.Random, seed: int) -> dict[str, str]:
    """Of twelve seeds each rule with each version, and block formats with both."""
    rule = RULES[seed % 4]
    given = {
        **TRIPS,
        TYPE: "MERGE_ON_READ",
        PARTITION: "",
        BUCKETS: "1",
        VERSION: "689"[seed // 4 % 3],
        BLOCKS: draw.choice(["avro", "parquet"]),
        "hoodie.parquet.block.size": draw.choice(["4k", "16k", "1m"]),
        "hoodie.index.bloom.num_entries": str(STORED),
    }
    if rule == "hook":
        return {**given, HOOK: "tests.merge_hooks:add"}
    if rule == "virtual keys":
        return {**given, VIRTUAL: "false"}
    return {**given, MODE: rule, ORDERING: draw.choice(["ts", "ts,fare"])}


def batch(draw: random.Random, keys: list[str]) -> pa.Table:
    return trips(*((key, "x", draw.randint(0, 9), draw.choice([1.0, 2.0, 3.0])) for key in keys))


def change(
    table: HoodieTable,
    options: dict[str, str],
    draw: random.Random,
    stored: list[str],
    others: list[str],
) -> None:
    """Write some keys: of rows of the base file, of others, of both, or one column of rows."""
    pool = draw.choice([stored[: draw.randint(1, STORED)], others, stored[:20] + others])
    rows = batch(draw, draw.sample(pool, min(len(pool), draw.choice([1, 5, 20, 30]))))
    if MODE in options and draw.random() < 0.3:
        live = [key for key, *_ in found(table)]
        rows = batch(draw, draw.sample(live, min(len(live), 9)))
        with without_columns("id", "city", "ts"):
            table.upsert(rows)
    elif draw.random() < 0.3:
        table.delete(rows.select(["id", "city"] + ["ts"] * (draw.random() < 0.5)))
    else:
        table.upsert(rows)


@pytest.mark.parametrize("seed", by_day(range(48), [0, 5, 10]))
def test_rows_are_those_of_a_plain_merge(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    options = options_of(draw, seed)
    for room in (sink.batch, index.choice):  # as base files in Hudi's buckets have them
        monkeypatch.setattr(room, "has_bloom_filters", lambda _: VIRTUAL not in options)
    letters = draw.choice(["ab", "aé", "a\uffff\U00010000", "\ud7ff\ue000\U0001f600"])
    drawn = {"".join(draw.choices(letters, k=draw.randint(4, 12))) for _ in range(2_000)}
    keys = sorted(drawn)[: STORED + 200]
    stored = draw.choice([keys[:STORED], draw.sample(keys, min(STORED, len(keys) - 50))])
    others = sorted(set(keys).difference(stored))
    table = HoodieTable(str(tmp_path), options)
    table.upsert(batch(draw, stored))

    def seen() -> tuple[object, ...]:
        merge_outcomes.cache_clear()
        count = table.count()
        merge_outcomes.cache_clear()
        rows = found(table)
        if VIRTUAL not in options:
            merge_outcomes.cache_clear()
            hook = add if HOOK in options else None
            whole = recombined(tmp_path, hook, verify=False).select(["id", "city", "ts", "fare"])
            assert sorted(tuple(row.values()) for row in whole.to_pylist()) == rows
        return count, len(rows), rows

    for _ in range(3):
        change(table, options, draw, stored, others)
        if draw.random() < 0.1:
            table.compact()
        answer = seen()
        with monkeypatch.context() as patched:
            for room in (slices.base_rows, reader.logged_rows):
                patched.setattr(room, "row_groups_with", all_of)
            assert seen() == answer
        assert answer[0] == answer[1]


def all_of(base: BaseFileReader, keys: object, numbers: list[int]) -> frozenset[int]:
    return frozenset(numbers)

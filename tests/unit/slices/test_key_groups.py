"""Row groups of a base file that its footer rules out have none of the asked keys."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds.columns.java_order import java_order
from hoodie_ds.config.enums import BloomFilterType
from hoodie_ds.formats.parquet.base_file import MAX_KEY_FOOTER, MIN_KEY_FOOTER
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.formats.parquet.bloom_filter import (
    BLOOM_FILTER_FOOTER,
    BLOOM_TYPE_FOOTER,
    BloomFilter,
    BloomFilterBuilder,
    BloomParams,
    FilterText,
)
from hoodie_ds.slices.key_groups import row_groups_with
from tests.tiers import by_day

SCHEMA = pa.schema([("_hoodie_record_key", pa.string())])
ALL = {0, 1, 2, 3}


def reader_of(
    keys: Sequence[str],
    *without: str,
    rows: int = 50,
    text: str | None = None,
    name: str = "00000000-f",
) -> BaseFileReader:
    """A base file with a filter, statistics and the ends of its keys, or without some of these."""
    bloom = BloomFilterBuilder(BloomParams(len(keys), 1e-9, BloomFilterType.DYNAMIC_V0, 500))
    bloom.add(pa.chunked_array([keys]))
    ends = sorted(keys, key=java_order)
    stored = {MIN_KEY_FOOTER: ends[0], MAX_KEY_FOOTER: ends[-1], **bloom.footers()}
    if text is not None:
        stored[BLOOM_FILTER_FOOTER] = text
    if "filter" in without:
        del stored[BLOOM_FILTER_FOOTER]
    if "ends" in without:
        del stored[MIN_KEY_FOOTER]
    file = io.BytesIO()
    table = pa.table([keys], SCHEMA).replace_schema_metadata(stored)
    kept = "statistics" not in without
    pq.write_table(table, file, row_group_size=rows, write_statistics=kept)
    return BaseFileReader(file, SCHEMA, f"x/{name}")


ASCENDING = [f"k{number:03}" for number in range(200)]
SHUFFLED = random.Random(7).sample(ASCENDING, 200)


@pytest.mark.parametrize(
    ("stored", "without", "asked", "found"),
    [
        (ASCENDING, "filter", ["k000"], {0}),
        (ASCENDING, "filter", ["k049", "k150"], {0, 3}),
        (ASCENDING, "filter", ["a", "k0495", "z"], set()),
        (ASCENDING, "", ["k0000", "k0600", "k1100", "k1600"], set()),
        (SHUFFLED, "filter", ["k1000"], ALL),
        (SHUFFLED, "", ["k1000", "k0505"], set()),
        (SHUFFLED, "", ["k1000", "k100"], ALL),
        (SHUFFLED, "", [f"k{number:03}x" for number in range(13)], ALL),  # too many to test
        (ASCENDING, "statistics filter", ["a", "z"], set()),
        (ASCENDING, "statistics filter", ["a", "k0"], set()),
        (ASCENDING, "statistics filter", ["k1"], ALL),
        (ASCENDING, "statistics filter ends", ["z"], ALL),
        (ASCENDING, "statistics", ["k1"], set()),
        (ASCENDING, "statistics", ["k100"], ALL),
        (ASCENDING, "", [None], ALL),
        (ASCENDING, "", [], set()),
    ],
)
def test_row_groups_that_may_have_keys(
    stored: list[str], without: str, asked: list[str], found: set[int]
) -> None:
    keys = pa.chunked_array([asked], pa.string())
    assert row_groups_with(reader_of(stored, *without.split()), keys, range(4)) == found


def test_every_key_is_tested() -> None:
    stored = [f"k{number:04}" for number in range(2_000)]
    random.Random(7).shuffle(stored)
    others, reader = [f"k{number:04}x" for number in range(100)], reader_of(stored, rows=500)
    assert row_groups_with(reader, pa.chunked_array([others]), range(4)) == set()
    for at in range(0, 100, 10):  # in a sample or not
        asked = pa.chunked_array([[*others[:at], "k1000", *others[at:]]])
        found = row_groups_with(reader, asked, range(4))
        assert found in (ALL, {stored.index("k1000") // 500})


def test_a_filter_of_too_many_keys_is_left_alone() -> None:
    """The share of other keys that it lets pass is known beforehand."""
    keys = [f"k{number:05}" for number in range(3_000)]
    shares = []
    for entries, most in ((3_000, 3_000), (1_000, 3_000), (1_000, 1_000)):
        params = BloomParams(entries, 1e-3, BloomFilterType.DYNAMIC_V0, most)
        builder = BloomFilterBuilder(params)
        builder.add(pa.chunked_array([keys]))
        text = builder.footers()[BLOOM_FILTER_FOOTER]
        shares.append(FilterText("DYNAMIC_V0", text.encode()).share_of_others(len(keys)))
        footers = {BLOOM_FILTER_FOOTER: text, BLOOM_TYPE_FOOTER: "DYNAMIC_V0"}
        bloom = BloomFilter.from_footers({k.encode(): v.encode() for k, v in footers.items()}, "f")
        assert bloom is not None
        passed = bloom.may_contain(pa.array([f"{key}x" for key in keys])).mean()
        assert passed / 3 < shares[-1] < 3 * passed
        reader = reader_of(random.Random(7).sample(keys, 3_000), text=text, rows=750)
        left = row_groups_with(
            reader, pa.chunked_array([[f"{key}x" for key in keys[:9]]]), range(4)
        )
        assert (left == ALL) == (most == 1_000)


def test_the_filter_of_what_is_no_bucket_is_left_alone() -> None:
    keys = pa.chunked_array([["k1000"]])
    assert row_groups_with(reader_of(SHUFFLED, name="f"), keys, range(4)) == ALL


@pytest.mark.parametrize("text", ["A" * 2_000, "no filter"])
def test_a_filter_that_is_large_or_damaged_rules_nothing_out(text: str) -> None:
    reader = reader_of(SHUFFLED, text=text)
    assert row_groups_with(reader, pa.chunked_array([["k1000"]]), range(4)) == ALL


def test_keys_whose_orders_differ() -> None:
    """To Java the key in the middle is the first."""
    stored = ["\ue000", "\U0001f600", "\uffff"]
    reader = reader_of(stored, "filter", "statistics")
    assert reader.key_range() == ("\U0001f600", "\uffff")
    assert row_groups_with(reader, pa.chunked_array([stored[:1]]), range(1)) == {0}


@pytest.mark.parametrize("seed", by_day(range(12), [0, 5]))
def test_what_is_ruled_out_has_no_key(seed: int) -> None:
    """Keys whose orders by UTF-8 and by Java's characters differ are among them."""
    draw = random.Random(seed)
    for _ in range(6):
        letters = draw.choice(["ab", "aé", "a\uffff\U00010000", "\ud7ff\ue000\U0001f600", "\x00a"])
        pool = ["".join(draw.choices(letters, k=draw.randint(0, 9))) for _ in range(600)]
        stored = list(dict.fromkeys(pool[:400]))
        if draw.random() < 0.5:
            stored.sort()
        without = draw.sample(["filter", "statistics", "ends"], draw.randint(0, 2))
        reader = reader_of(stored, *without, rows=draw.choice([20, 100, 500]))
        asked = draw.choices(draw.choice([pool, pool[400:]]), k=draw.choice([1, 3, 40]))
        found = row_groups_with(reader, pa.chunked_array([asked]), range(reader.num_row_groups))
        for number in set(range(reader.num_row_groups)) - found:
            (piece,) = reader.pieces(None, [number])
            assert not {*piece[0].to_pylist()} & {*asked}

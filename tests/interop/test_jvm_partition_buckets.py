"""Buckets by partition: Apache Hudi on the JVM and we agree about every partition's number."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.bucket_rules import BucketRules
from tests.interop.jvm_hudi import JvmHudi, keeping
from tests.interop.test_jvm_pingpong import BASE, COW, MOR, PARQUET, PARTITIONED, Game
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

RULES = "hoodie.bucket.index.partition.expressions"
CONFIGS = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
EXPRESSIONS = "=c1$,5;c[12],2"
COUNTS = {"city=c0": 4, "city=c1": 5, "city=c2": 2}
RULED = {**BASE, **PARTITIONED, "hoodie.bucket.index.num.buckets": "4", RULES: EXPRESSIONS}
TABLES = {"cow": {**RULED, **COW}, "mor": {**RULED, **MOR, **PARQUET}}
# The syntax that rules may have, at random; what does not compile is left out.
PARTS = (
    *("x", "P", "i", ":", "!", "<"),
    *("a", "b", "2024", "-", "=", "/", " ", "é", "日", "\U0001f600", "_", "A", ".", ".", "^", "$"),
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\.", r"\-", r"\$", r"\\", r"\/", r"\{", r"\_"),
    *("[ab]", "[^ab]", "[a-z0-9]", r"[\d.]", "[^-]", r"[\]\[]", "[A-z]", "[é-ü]", "[a^]", "[$.]"),
    *("*", "+", "?", "*?", "+?", "??", "{2}", "{3}", "*+", "|", "|", "(", ")", ")", "(?:"),
    *("(?=", "(?!", "(?<=", "(?<!"),
)
LETTERS = "ab2024-=/ é日\U0001f600_AZk\u212a[]{}.$^\\ü\t٣"


def buckets_of(path: Path) -> dict[str, set[int]]:
    """Numbers that the data files of each partition are named after."""
    found: dict[str, set[int]] = {}
    for file in path.glob("city=*/*"):
        if file.suffix == ".parquet" or ".log." in file.name:
            found.setdefault(file.parent.name, set()).add(int(file.name.lstrip(".")[:8]))
    return found


def test_rules_decide_as_they_do_in_java(jvm_hudi: JvmHudi) -> None:
    draw = random.Random(5)
    paths = ["", *("".join(draw.choices(LETTERS, k=draw.randint(1, 12))) for _ in range(60))]
    texts: list[str] = []
    while len(texts) < 150:
        prefix = draw.choice(["", "", "(?i)"])
        patterns = [prefix + "".join(draw.choices(PARTS, k=draw.randint(1, 6))) for _ in range(2)]
        text = ";".join(f"{pattern},{n}" for n, pattern in enumerate(patterns, 1))
        if BucketRules.parse(text) is not None:
            texts.append(text)
    seen = set()
    for text in texts:
        rules = BucketRules.parse(text)
        assert rules is not None
        ours = [rules.num_buckets(path) or 9 for path in paths]
        assert ours == jvm_hudi.num_buckets(text, 9, paths), text
        seen.update(ours)
    assert seen == {1, 2, 9}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_ours_written_in_turns(jvm_hudi: JvmHudi, tmp_path: Path, name: str) -> None:
    game = Game(tmp_path / "t", TABLES[name], jvm_hudi)
    for _ in range(2):
        game.ours()
        # The stored rules decide: Hudi is told nothing of them.
        game.options = {k: v for k, v in TABLES[name].items() if k != RULES}
        game.theirs()
    game.we_delete()
    game.they_delete()
    game.ours()
    found = buckets_of(game.path)
    assert {partition: max(buckets) + 1 for partition, buckets in found.items()} == COUNTS


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_theirs_written_in_turns(jvm_hudi: JvmHudi, tmp_path: Path, name: str) -> None:
    """Hudi's Spark writer takes the rules from its options and stores none."""
    game = Game(tmp_path / "t", TABLES[name], jvm_hudi)
    game.theirs()
    assert not (game.path / CONFIGS).exists()
    game.ours()
    game.theirs()
    game.ours()
    found = buckets_of(game.path)
    assert {partition: max(buckets) + 1 for partition, buckets in found.items()} == COUNTS


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_theirs_that_they_rescale(jvm_hudi: JvmHudi, tmp_path: Path, name: str) -> None:
    """Hudi's procedure stores rules, by which both go on."""
    options = {k: v for k, v in TABLES[name].items() if k != RULES}
    game = Game(tmp_path / "t", options, jvm_hudi)
    game.theirs()
    game.ours()
    jvm_hudi.sql(f"create table rescaled_{name} using hudi location '{game.path}'")
    jvm_hudi.sql(
        f"call partition_bucket_index_manager(table => 'rescaled_{name}', overwrite => 'c0,7;1$,5',"
        "rule => 'regex', bucket_number => 4, dry_run => false, "
        f"options => '{','.join(f'{k}={text}' for k, text in keeping(game.path).items())}')"
    )
    game.check()
    game.ours()
    game.theirs()
    game.ours()
    rows = game.jvm.read(game.path).to_pylist()
    highest = {row["city"]: 0 for row in rows}
    for row in rows:
        highest[row["city"]] = max(highest[row["city"]], int(row["_hoodie_file_name"][:8]))
    assert highest == {"c0": 6, "c1": 4, "c2": 3}


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("version", "name"), by_day(product("69", TABLES), {("6", "cow"), ("9", "mor")})
)
def test_a_table_of_ours_that_we_rescale(
    jvm_hudi: JvmHudi, tmp_path: Path, name: str, version: str
) -> None:
    """Hudi goes by the number that is stored, which none of its options says."""
    options = {k: v for k, v in TABLES[name].items() if k != RULES}
    game = Game(tmp_path / "t", {**options, "hoodie.write.table.version": version}, jvm_hudi)
    game.ours()
    game.theirs()
    HoodieTable(str(game.path)).rescale_buckets(7, "c1$,5")
    del game.options["hoodie.bucket.index.num.buckets"]
    game.check()
    game.theirs()
    game.ours()
    game.theirs()
    highest = dict.fromkeys(("c0", "c1", "c2"), 0)
    for row in game.jvm.read(game.path).to_pylist():
        highest[row["city"]] = max(highest[row["city"]], int(row["_hoodie_file_name"][:8]))
    assert highest == {"c0": 6, "c1": 4, "c2": 6}
    HoodieTable(str(game.path)).rescale_buckets(2)
    game.check()
    game.theirs()
    game.ours()
    rows = game.jvm.read(game.path).to_pylist()
    assert {int(row["_hoodie_file_name"][:8]) for row in rows} == {0, 1}

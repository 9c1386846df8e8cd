"""Options that are malformed, extreme or contradictory: an error of ours, or a write that is right.

Nothing is written where one is refused, and no secret is in the error.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.ignored_options import IGNORED
from hoodie_ds.config.known_options import READ_OPTIONS, WRITE_OPTIONS
from hoodie_ds.config.option import Option
from hoodie_ds.config.properties.java_properties import parse_properties
from hoodie_ds.config.restricted_options import READ_RESTRICTED, WRITE_RESTRICTED
from hoodie_ds.config.table_options import KEYGEN_PREFIX, KEYGEN_SUFFIXES
from hoodie_ds.errors import HoodieError, OptionError
from hoodie_ds.testing import MemoryStorage, one_thread
from tests.hostile.limits import within_limits
from tests.hostile.seeds import table_files
from tests.tables import TRIPS, found, tree, trips
from tests.tally import tally

QUICK = 15
EXAMPLES = 1_800
NIGHTLY = 60_000
ALLOWED_EVERY = 6
"""Of so many examples one has none but values that its options may have."""
SECRET = "hunter2-secret"
ROWS = trips(("k1", "x", 9, 1.5), ("n", "y", 9, 2.5))
LEFT_OUT = ("path", "hoodie.py.merge.hook")
"""Of options, those that say where the table is, or run the user's own code."""

OPTIONS = [option for option in (*WRITE_OPTIONS, *READ_OPTIONS) if option.key not in LEFT_OUT]
KEYS = [
    *(name for option in OPTIONS for name in (option.key, *option.aliases)),
    *(KEYGEN_PREFIX + suffix for suffix in KEYGEN_SUFFIXES),
    *WRITE_RESTRICTED,
    *READ_RESTRICTED,
]
HOSTILE: tuple[Any, ...] = (
    *(
        "NaN",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "-1",
        "0",
        "-0",
        "1",
        "2",
        "0x10",
        "1_000",
        "+5",
        "1.5",
    ),
    *("9" * 30, "9" * 5000, str(2**31 - 1), str(2**31), str(2**63), "1e-400", "5e-324", "0.5"),
    *("", " ", "\0", "a\0b", "a\nhoodie.table.name=evil", "a\r\nb", "\ud800", "x" * (1 << 20)),
    *("true", "TRUE", "True", "yes", "null", "None", "é", "😀", "١٢", "a,b", "a,,b", ",", "id,id"),
    *("id", "city", "fare", "nothing", "city:SIMPLE", "id.x", "../x", "/etc/passwd", "__import__"),
    *("upsert", "INSERT", "delete", "COPY_ON_WRITE", "merge_on_read", "BLOOM", "GLOBAL_SIMPLE"),
    *("snappy", "ZSTD", "parquet", "avro", "10KB", "1MB", "1TB", "1PB", "(a+)+$,3", ".*,2;x,1"),
    *("EVENT_TIME_ORDERING", "CUSTOM", "org.apache.hudi.keygen.SimpleKeyGenerator", "$(id)"),
    *(None, True, False, 0, -1, 10**30, float("nan"), float("inf"), 1.5),
    *(b"x", [], {}, object()),
)


@cache
def allowed() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names of options, each with the hostile values that it may have."""
    texts = [value for value in HOSTILE if isinstance(value, str)]
    names = [(option, name) for option in OPTIONS for name in (option.key, *option.aliases)]
    found = ((name, tuple(t for t in texts if _may_be(option, name, t))) for option, name in names)
    return tuple((name, values) for name, values in found if values)


def _may_be(option: Option[Any], name: str, text: str) -> bool:
    try:
        option.parse(text, name)
    except OptionError:
        return False
    return True


def extremes_of(rng: random.Random) -> dict[str, Any]:
    """A table's usual options, and others that are extreme, or contradict one another."""
    some = rng.sample(allowed(), rng.choice((1, 2, 3, 4)))
    return {**TRIPS, **{name: rng.choice(values) for name, values in some}}


def spoilt_of(rng: random.Random) -> dict[str, Any]:
    """A table's usual options, some of them spoilt."""
    options: dict[str, Any] = dict(TRIPS)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        key = rng.choice(KEYS)
        match rng.randrange(10):
            case 0:
                key = key.upper()
            case 1:
                key = key[:-1]
            case 2:
                key += rng.choice((" ", "\0", "\n", ".", "x"))
            case 3:
                key = rng.choice(list(IGNORED))
        options[key] = rng.choice(HOSTILE)
    if rng.random() < 0.2:
        key = rng.choice(list(TRIPS))
        options[key.upper()] = rng.choice((TRIPS[key], rng.choice(HOSTILE)))
    return options


def try_options(number: int) -> bool:
    """Whether a write was refused; what fails says how to try it again."""
    rng = random.Random(number)
    options = spoilt_of(rng) if number % ALLOWED_EVERY else extremes_of(rng)
    options["hoodie.py.storage.option.secret"] = SECRET
    files = table_files(rng.choice(("cow", "mor"))) if rng.random() < 0.5 else {}
    storage = MemoryStorage("memory://options", files)
    refused = False
    try:
        with one_thread(), within_limits():
            try:
                HoodieTable("memory://options", options, storage=storage).upsert(ROWS)
            except HoodieError as error:
                refused = True
                check_message(str(error))
            check_outcome(storage, files, options, refused)
    except Exception as error:
        again = f"from tests.hostile.test_options import try_options; try_options({number})"
        raise AssertionError(f"{type(error).__name__}: {error}; again: {again}") from error
    return refused


def check_message(text: str) -> None:
    assert SECRET not in text
    assert len(text) < 5_000


def check_outcome(
    storage: MemoryStorage, files: dict[str, bytes], options: dict[str, Any], refused: bool
) -> None:
    if refused:
        assert storage.files == files, "a write that was refused left something"
        return
    operation = {str(v).lower() for k, v in options.items() if k.lower().endswith("operation")}
    if not operation or operation == {"upsert"}:
        rows = {row[0]: row for row in found(HoodieTable(storage.root, storage=storage))}
        assert {"k1", "n"} <= rows.keys()
        assert rows["n"] == ("n", "y", 9, 2.5)
    properties = parse_properties(storage.files[".hoodie/hoodie.properties"], "p")
    assert properties["hoodie.table.name"] != "evil"
    assert not any(SECRET in key + value for key, value in properties.items())
    for path, content in storage.files.items():
        assert SECRET.encode() not in content, path


def test_some_examples() -> None:
    outcomes = Counter(try_options(number) for number in range(QUICK))
    assert min(outcomes.values()) > QUICK // 10


@pytest.mark.slow
def test_many_examples() -> None:
    for number in range(EXAMPLES):
        try_options(number)
        tally("hostile options")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_very_many_examples(part: int) -> None:
    for number in range(EXAMPLES + part, NIGHTLY, 10):
        try_options(number)


@pytest.mark.parametrize(
    "path",
    [
        *("", " ", "\0", "a\0b", "a\nb", "\ud800", f"s3://key:{SECRET}@bucket/t", "s3://"),
        *(f"s3://bucket/t?token={SECRET}", f"s3://bucket/t#{SECRET}", f"simplecache::{SECRET}://x"),
        *(f"ftp://me:{SECRET}@host/t", f"nosuchscheme://{SECRET}", "file://host/x", "s3:///x"),
    ],
)
def test_a_hostile_base_path(path: str) -> None:
    with pytest.raises(HoodieError) as caught:
        HoodieTable(path, TRIPS).upsert(ROWS)
    assert SECRET not in str(caught.value) or "nosuchscheme" in path


def test_a_table_within_a_table_is_refused(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path / "t"), TRIPS).upsert(ROWS)
    before = tree(tmp_path)
    for inner in ("x", ".hoodie", ".hoodie/.temp", "x/y/z", "new"):
        with pytest.raises(OptionError, match=r"'path'.*(within the table .*/t; name|not empty)"):
            HoodieTable(str(tmp_path / "t" / inner), TRIPS).upsert(ROWS)
        assert tree(tmp_path) == before


def test_the_system_folder_is_no_place_for_a_table() -> None:
    with pytest.raises(HoodieError):
        HoodieTable("file:///etc", TRIPS).upsert(ROWS)
    assert not Path("/etc/.hoodie").exists()


def test_options_are_no_expressions(tmp_path: Path) -> None:
    """Nothing of an option is evaluated, imported or put into a template."""
    name = "{0.__class__} %(x)s ${HOME} __import__('os')"
    table = HoodieTable(str(tmp_path / "t"), {**TRIPS, "hoodie.table.name": name})
    table.upsert(ROWS)
    assert table.properties.name == name
    assert table.read(["id"]).num_rows == 2
    assert isinstance(table.read(), pa.Table)

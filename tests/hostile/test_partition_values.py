"""Partition values and keys that are made to do harm: inside the table, apart, or refused."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_ds import HoodieTable
from hoodie_ds.errors import PathEscapeError, RecordKeyError
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.path import check_path
from hoodie_ds.testing import FaultyStorage
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.tables import tree
from tests.tally import tally
from tests.tiers import by_day

WRITE = "hoodie.datasource.write."
DEFAULT = "__HIVE_DEFAULT_PARTITION__"
HOSTILE = (
    *(
        "../",
        "..",
        "../../x",
        "..%2f",
        "%2e%2e",
        "..%2fx",
        "/",
        "/etc",
        "/etc/passwd",
        "//",
        "a//b",
    ),
    *(".", "./a", "a/.", "a/..", ".hoodie", ".hoodie/x", "a/.hoodie", ".x", "_x", "_", "_hoodie"),
    *("", " ", "  a", "a ", "=", "a=b", "city=x", ":", "10:30", "%", "%25", "%2F", "C:\\x", "\\"),
    *("x", "X", "a", "a/b", "a/b/c", "é", "e\u0301", "\ufb01", "😀", "日本", "\u202egnp", "\u0000"),
    *("a\0b", "a\nb", "\r", "\t", "\x7f", "\ufeff", "~", "$HOME", "`id`", "$(id)", "*", "?", "[a]"),
    *(",", "x,a", " x", "x, a", "x*", ".*", "a|x", "(", "\\Q", "x\\E"),
    *("a" * 255, "a" * 256, "é" * 128, "%" * 100, "a/" * 300, DEFAULT, f"{DEFAULT}x", "null"),
    *("x.parquet", "a_0-0-0_20260101000000000.parquet", ".a_1.log.1_0-0-0", "NaN", "-", "'", '"'),
)
VALUES = st.none() | st.sampled_from(HOSTILE) | st.text(max_size=6)
GENERATORS: Mapping[str, Mapping[str, str]] = {
    "SIMPLE": {"partitionpath.field": "city"},
    "COMPLEX": {"partitionpath.field": "city,zone"},
    "CUSTOM": {"partitionpath.field": "city:SIMPLE,zone:SIMPLE"},
    "NON_PARTITION": {"partitionpath.field": ""},
    "TIMESTAMP": {"partitionpath.field": "city"},
}
TIMED = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
CASES = list(itertools.product(GENERATORS, (False, True), (False, True)))
BY_DAY = [(case,) for case in CASES if case[1] == case[2]]
_numbers = itertools.count()


@dataclass
class Place:
    """A table's folder, with files of others around it."""

    around: Path
    options: Mapping[str, str]

    def __post_init__(self) -> None:
        (self.around / "etc").mkdir(parents=True)
        (self.around / "etc" / "passwd").write_text("root")
        (self.around / "tables").mkdir()
        self.storage = FaultyStorage(open_storage(str(self.path)))
        self.table = HoodieTable(str(self.path), self.options, storage=self.storage)
        self.before = self.surroundings()

    @property
    def path(self) -> Path:
        return self.around / "tables" / "table"

    def surroundings(self) -> dict[str, bytes | None]:
        """All that is around the table, which nothing may change."""
        inside = (str(self.path), f"{self.path}/")
        files = {p: content for p, content in tree(self.around).items() if p != inside[0]}
        return {p: content for p, content in files.items() if not p.startswith(inside[1])}

    def check_jail(self) -> None:
        """Nothing was asked for outside of the table."""
        assert self.surroundings() == self.before
        for operation in self.storage.recorder.operations:
            check_path(operation.path, root_allowed=True)


def options_of(generator: str, hive_style: bool, url_encode: bool) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        f"{WRITE}recordkey.field": "id",
        f"{WRITE}keygenerator.type": generator,
        f"{WRITE}hive_style_partitioning": str(hive_style).lower(),
        f"{WRITE}partitionpath.urlencode": str(url_encode).lower(),
        "hoodie.bucket.index.num.buckets": "1",
        **{f"{WRITE}{key}": value for key, value in GENERATORS[generator].items() if value},
        **(TIMED if generator == "TIMESTAMP" else {}),
    }


def rows_of(values: Sequence[tuple[str | None, str | None]], number: int) -> pa.Table:
    columns = {
        "id": pa.array([f"k{n}" for n in range(len(values))]),
        "city": pa.array([city for city, _ in values], pa.string()),
        "zone": pa.array([zone for _, zone in values], pa.string()),
        "n": pa.array([number] * len(values)),
    }
    return pa.table(columns)


def try_values(
    around: Path, case: tuple[str, bool, bool], values: Sequence[tuple[str | None, str | None]]
) -> bool:
    """Write and read rows; whether they were refused."""
    generator = case[0]
    place = Place(around, options_of(*case))
    rows = rows_of(values, 1)
    try:
        place.table.upsert(rows)
    except RecordKeyError as error:
        assert not place.path.exists(), "a table was made for rows that were refused"
        said = str(error)
        assert "city" in said or "zone" in said
        assert "'" in said
        assert any(word in said for word in ("correct", "create", "choose", "decode", "format"))
        place.check_jail()
        return True
    place.table.upsert(rows_of(values, 2))
    place.check_jail()
    found = place.table.read().to_pylist()
    assert sorted(key_of(row) for row in found) == sorted(
        key_of(row) for row in rows_of(values, 2).to_pylist()
    )
    # Null and the empty text are one in Hudi.
    folders: dict[str, set[tuple[str, str]]] = {}
    for row in found:
        named = (row["city"] or DEFAULT, row["zone"] or DEFAULT)
        folders.setdefault(row["_hoodie_partition_path"], set()).add(
            named if generator in ("COMPLEX", "CUSTOM") else (named[0], "")
        )
    if generator not in ("NON_PARTITION", "TIMESTAMP"):
        assert all(len(values) == 1 for values in folders.values()), folders
    data = [p.relative_to(place.path) for p in place.path.rglob("*") if is_data(p)]
    data = [p for p in data if p.parts[:2] != (".hoodie", ".locks")]
    assert {str(p.parent) for p in data} == {folder or "." for folder in folders}
    assert not any(".hoodie" in path.parts for path in data)
    if generator in ("SIMPLE", "COMPLEX") and len(values) == 1:
        theirs = read_with_hudi_rs(place.path).to_pylist()
        assert [key_of(row) for row in theirs] == [key_of(row) for row in found]
    if generator != "NON_PARTITION":
        check_delete(place, found)
    return False


def check_delete(place: Place, found: Sequence[Mapping[str, Any]]) -> None:
    """Delete a partition by its path: its rows go, and no other."""
    gone = max(row["_hoodie_partition_path"] for row in found)
    place.table.delete_partitions([gone], exact=True)
    kept = [key_of(row) for row in found if row["_hoodie_partition_path"] != gone]
    assert sorted(key_of(row) for row in place.table.read().to_pylist()) == sorted(kept)
    place.check_jail()


def key_of(row: Mapping[str, Any]) -> str:
    return repr([row[name] for name in ("id", "city", "zone", "n")])


def is_data(path: Path) -> bool:
    return path.is_file() and path.name.startswith("0000000")


def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / f"place{next(_numbers)}"


@pytest.fixture(autouse=True, scope="module")
def _no_sync() -> Iterator[None]:
    """No power is cut here, and thousands of small files are written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=6)
@given(values=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4))
def test_hostile_values(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[str, bool, bool], values: Any
) -> None:
    around = fresh(tmp_path_factory)
    try_values(around, case, values)
    shutil.rmtree(around)


@pytest.mark.slow
@pytest.mark.parametrize("case", by_day([(case,) for case in CASES], BY_DAY))
def test_every_hostile_value(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[str, bool, bool]
) -> None:
    """Each alone, and beside others that it might be taken for."""
    refused = 0
    for number, value in enumerate(HOSTILE):
        alone = number % 2 or case[0] == "SIMPLE"
        values = [(value, "z")] if alone else [("x", value), (value, "x"), (None, "a")]
        around = fresh(tmp_path_factory)
        refused += try_values(around, case, values)
        shutil.rmtree(around)
        tally("partition values")
    assert refused or case[0] == "NON_PARTITION"
    assert refused < len(HOSTILE) or case[0] == "TIMESTAMP"  # where none of them is a date


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """As Spark makes them of a cast from binary, half of a surrogate pair among them."""
    for column in ("id", "city"):
        for body in (b"\xff\xfe", "\ud800".encode("utf-8", "surrogatepass")):
            offsets = pa.array([0, len(body)], pa.int32()).buffers()[1]
            text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(body)])
            rows = rows_of([("x", "z")], 1)
            rows = rows.set_column(rows.column_names.index(column), column, text)
            table = HoodieTable(str(tmp_path / "t"), options_of("SIMPLE", False, False))
            with pytest.raises(RecordKeyError, match=rf"'{column}'.*not UTF-8 text.*correct"):
                table.upsert(rows)
            assert not (tmp_path / "t").exists()


def test_keys_come_back_as_they_were(tmp_path: Path) -> None:
    keys = [text for text in HOSTILE if text]
    rows = pa.table({"id": keys, "city": ["x"] * len(keys), "n": list(range(len(keys)))})
    table = HoodieTable(str(tmp_path / "t"), options_of("SIMPLE", False, False))
    table.upsert(rows)
    table.upsert(rows)
    found = {row["id"]: row["n"] for row in table.read(["id", "n"]).to_pylist()}
    assert found == {key: n for n, key in enumerate(keys)}
    assert table.read(["id"]).num_rows == len(keys) == len(set(keys))


def test_a_link_within_the_table_leads_nowhere(tmp_path: Path) -> None:
    place = Place(tmp_path / "p", options_of("SIMPLE", False, False))
    place.table.upsert(rows_of([("x", "z")], 1))
    (place.path / "y").symlink_to(place.around / "etc")
    with pytest.raises(PathEscapeError, match=r"'y'.*link leads outside"):
        place.table.upsert(rows_of([("y", "z")], 1))
    place.check_jail()
    (place.path / "y").unlink()
    place.table.upsert(rows_of([("y", "z")], 1))
    assert place.table.read(["city"])["city"].to_pylist() == ["x", "y"]

"""What becomes of the options that those bring along who come from Hudi on the JVM."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config import archiving_options, known_options
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError
from hoodie_ds.testing import MemoryStorage
from tests.tables import TRIPS, found, trips

_LINES = (Path(__file__).parent / "usual_options.txt").read_text().splitlines()
USUAL = [tuple(line.split(" ", 1)) for line in _LINES if not line.startswith("#")]


@pytest.fixture(autouse=True)
def _nothing_told_yet() -> None:
    known_options._warn_once.cache_clear()
    archiving_options._warn_of_raised.cache_clear()


def outcome(options: dict[str, str], caplog: pytest.LogCaptureFixture, read: bool) -> str:
    try:
        ReadOptions.parse(options) if read else WriteOptions.parse(options)
    except OptionError as error:
        return "refused" if len(error.parts) == 1 else f"refused more than once: {error}"
    return "warned" if caplog.records else "obeyed"


@pytest.mark.parametrize(("expected", "given"), USUAL)
def test_the_outcome_of_a_usual_option(
    expected: str, given: str, caplog: pytest.LogCaptureFixture
) -> None:
    key, _, value = given.partition("=")
    read = expected.startswith("read-")
    told = outcome({"path": "/t", key: value}, caplog, read)
    assert told == expected.removeprefix("read-")
    assert all(key in record.getMessage() for record in caplog.records)


def test_enough_are_usual() -> None:
    assert len(set(USUAL)) == len(USUAL) >= 124


def test_what_has_no_effect_is_named_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    options = {
        **TRIPS,
        "hoodie.bloom.index.use.metadata": "true",
        "hoodie.bloom.index.parallelism": "30",
        "Hoodie.Metrics.On": "true",
        "hoodie.metadata.max.init.parallelism": "10",
        "hoodie.embed.timeline.server": "false",
    }
    table = HoodieTable("memory://t", options, storage=MemoryStorage())
    table.upsert(trips(("a", "x", 1, 1.0)))
    assert found(table) == [("a", "x", 1, 1.0)]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("hoodie_ds", logging.WARNING)
    told = record.getMessage()
    assert "hoodie.bloom.index.parallelism, hoodie.bloom.index.use.metadata (" in told
    assert "hoodie.metrics.on" in told
    assert "hoodie.metadata.max.init.parallelism" in told
    assert "timeline.server" not in told


def test_other_keys_are_another_warning(caplog: pytest.LogCaptureFixture) -> None:
    for key in ("write.tasks", "compaction.tasks", "write.tasks"):
        WriteOptions.parse({"path": "/t", key: "4"})
    assert len(caplog.records) == 2


def test_all_that_is_wrong_is_told_at_once() -> None:
    options = {
        "hoodie.tabel.name": "t",
        "hoodie.populate.meta.fields": "no",
        "hoodie.index.type": "HBASE",
        "hoodie.datasource.write.operation": "merge",
        "hoodie.datasource.write.batch.identifier": "7",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.py.merge.hook": 7,
        "hoodie.datasource.write.commitmeta.key.prefix": "hoodie.",
        "hoodie.datasource.write.insert.drop.duplicates": "true",
        "hoodie.datasource.insert.dup.policy": "fail",
        "hoodie.datasource.write.keygenerator.type": "SIMPLE",
        "hoodie.datasource.write.keygenerator.class": (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        ),
        "hoodie.datasource.write.partitionpath.field": "a,b",
        "hoodie.bucket.index.num.buckets": ["8"],
    }
    with pytest.raises(OptionError) as caught:
        WriteOptions.parse(options)
    error = caught.value
    assert error.key == "hoodie.tabel.name"
    wrong = {part.key for part in error.parts}
    agreeing = {
        "hoodie.datasource.insert.dup.policy",
        "hoodie.datasource.write.keygenerator.type",
    }
    assert wrong == {*options, "path"} - agreeing
    text = str(error)
    assert text.startswith(f"{len(wrong)} options are refused. (1) option 'hoodie.tabel.name'")
    assert all(repr(key) in text for key in wrong)
    assert "\n" not in text
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.key, len(again.parts)) == (text, error.key, len(wrong))


def test_no_message_is_endless() -> None:
    with pytest.raises(OptionError) as caught:
        WriteOptions.parse({"path": "/t", **{f"hoodie.x{n}": "1" for n in range(500)}})
    assert len(caught.value.parts) == 500
    assert len(str(caught.value)) < 10_000


def test_a_read_tells_all_at_once() -> None:
    with pytest.raises(OptionError) as caught:
        ReadOptions.parse({"as.of.instant": "1", "hoodie.datasource.query.type": "incremental"})
    assert [part.key for part in caught.value.parts] == [
        "path",
        "as.of.instant",
        "as.of.instant",
        "hoodie.datasource.read.begin.instanttime",
    ]


def test_all_that_contradicts_a_table_is_told_at_once() -> None:
    storage = MemoryStorage()
    HoodieTable("memory://t", TRIPS, storage=storage).upsert(trips(("a", "x", 1, 1.0)))
    other = {"hoodie.table.name": "others", "hoodie.bucket.index.num.buckets": "7"}
    with pytest.raises(OptionError) as caught:
        HoodieTable("memory://t", other, storage=storage).upsert(trips(("a", "x", 1, 1.0)))
    assert {part.key for part in caught.value.parts} == set(other)


def test_all_that_a_new_table_lacks_is_told_at_once() -> None:
    options = {
        "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.index.type": "BUCKET",
    }
    table = HoodieTable("memory://t", options, storage=MemoryStorage())
    with pytest.raises(OptionError) as caught:
        table.insert(trips(("a", "x", 1, 1.0)))
    assert [part.key for part in caught.value.parts] == [
        "hoodie.table.name",
        "hoodie.datasource.write.precombine.field",
        "hoodie.datasource.write.recordkey.field",
    ]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("hoodie.base.path", "its name is path now"),
        ("hoodie.upsert.parallelism", "the nearest known is hoodie.upsert.shuffle.parallelism"),
        ("hoodie.datasource.write.file.type", "look for its name"),
        ("hoodie.x", "look for its name"),
    ],
)
def test_a_hint_is_right_or_not_given(key: str, hint: str) -> None:
    with pytest.raises(OptionError) as caught:
        WriteOptions.parse({"path": "/t", key: "v"})
    assert hint in str(caught.value)

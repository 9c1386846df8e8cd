"""The stored rules of a bucket index, in the file that Hudi writes and reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.hashing_config import (
    HashingConfig,
    load_hashing_config,
    put_hashing_config,
)
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.timeline import Timeline
from tests.unit.transaction.failed_tables import new_table

FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
# What PartitionBucketIndexHashingConfig.toJsonString of Hudi 1.2.0 returned.
WRITTEN_BY_HUDI = r"""{
  "expressions" : "\\d{4}-(06|07),256;é\"x,3",
  "defaultBucketNumber" : 10,
  "rule" : "regex",
  "version" : 1,
  "instant" : "00000000000000"
}"""


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def put(storage: Storage, name: str, text: str) -> None:
    storage.put_if_absent(f"{FOLDER}/{name}", text.encode())


def test_hudis_file_is_read(storage: Storage) -> None:
    assert load_hashing_config(storage, Timeline()) is None
    put(storage, "00000000000000.hashing_config", WRITTEN_BY_HUDI)
    put(storage, ".00000000000001.hashing_config.crc", "x")
    expected = HashingConfig('\\d{4}-(06|07),256;é"x,3', 10)
    assert load_hashing_config(storage, Timeline()) == expected


def test_the_newest_that_is_committed_counts(storage: Storage) -> None:
    for time, number in (("00000000000000", 1), ("20250101000000000", 2), ("20250102000000000", 3)):
        text = WRITTEN_BY_HUDI.replace("10,", f"{number},")
        put(storage, f"{time}.hashing_config", text)
    ends = [
        Instant(time, Action.REPLACE_COMMIT, state)
        for time in ("20250101000000000", "20250102000000000")
        for state in (State.COMPLETED, State.INFLIGHT)
    ]
    first, begun_first, second, begun_second = ends

    def buckets(completed: Sequence[Instant], *pending: Instant) -> int:
        config = load_hashing_config(storage, Timeline(tuple(completed), pending=pending))
        assert config is not None
        return config.default_buckets

    assert buckets([first, second]) == 3
    assert buckets([first], begun_second) == 2
    assert buckets([first]) == 2  # it was rolled back, or has begun since
    assert buckets([], begun_first) == 1
    later = Instant("20250103000000000", Action.COMMIT, State.COMPLETED)
    assert buckets([later]) == 3  # both are archived


def test_our_file_holds_what_hudis_does(storage: Storage) -> None:
    table = new_table(
        storage,
        hoodie__bucket__index__num__buckets="10",
        hoodie__bucket__index__partition__expressions='\\d{4}-(06|07),256;é"x,3',
    )
    put_hashing_config(table)
    put_hashing_config(table)
    ((path, data),) = [(s.path, storage.read(s.path)) for s in storage.list(FOLDER)]
    assert path == f"{FOLDER}/00000000000000.hashing_config"
    assert json.loads(data) == json.loads(WRITTEN_BY_HUDI)
    assert list(json.loads(data)) == list(json.loads(WRITTEN_BY_HUDI))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (WRITTEN_BY_HUDI[:40], CorruptFileError),
        ("[]", CorruptFileError),
        ("", CorruptFileError),
        (WRITTEN_BY_HUDI.replace("10", "0"), CorruptFileError),
        (WRITTEN_BY_HUDI.replace("10", '"ten"'), CorruptFileError),
        (WRITTEN_BY_HUDI.replace('"regex"', '"range"'), UnsupportedTableError),
        (WRITTEN_BY_HUDI.replace('"version" : 1', '"version" : 2'), UnsupportedTableError),
    ],
)
def test_a_file_that_cannot_be_followed_is_refused_by_name(
    storage: Storage, text: str, error: type[Exception]
) -> None:
    put(storage, "00000000000000.hashing_config", text)
    with pytest.raises(error, match=r"00000000000000\.hashing_config"):
        load_hashing_config(storage, Timeline())

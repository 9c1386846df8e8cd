"""Syncs into a real Hive metastore, and back out of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.golden.kept_catalogs import NAMES, KeptCatalog
from tests.golden.make.catalogs import answers, metastore_client
from tests.hive_metastore import free_port, running_metastore
from tests.tables import TRIPS, TYPE, trips

SYNC = "hoodie.datasource.hive_sync."

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not ("JAVA_HOME" in os.environ or shutil.which("java")), reason="no Java for a metastore"
    ),
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_metastore(tmp_path_factory.mktemp("metastore")) as address:
        yield address


@pytest.mark.parametrize("name", NAMES)
def test_a_real_metastore_is_told_what_hudi_tells_it(name: str, uri: str, tmp_path: Path) -> None:
    kept, base = KeptCatalog(name), tmp_path / "table"
    for expected in kept.steps(base):
        options = {**kept.options(), f"{SYNC}metastore.uris": uri}
        assert HoodieTable(base).sync_catalog(options)
        assert kept.comparable(answers(uri, kept.database, str(base))) == expected


def test_values_of_any_letters_are_found_again(uri: str, tmp_path: Path) -> None:
    cities = ["a b", "50%", "x=y", "Zürich", "[c]", 'q"', "#1", "UPPER", "^", "x{y"]
    options = {**TRIPS, f"{SYNC}enable": "true", f"{SYNC}database": "letters",
               f"{SYNC}metastore.uris": uri}  # fmt: skip
    table = HoodieTable(tmp_path, options)
    for _ in range(2):  # the second time all of them are there
        rows = [(str(n), city, 1, 1.0) for n, city in enumerate(cities)]
        assert not table.upsert(trips(*rows)).failed_services
    found = answers(uri, "letters", str(tmp_path))["trips"]["partitions"]
    assert sorted(one["values"][0] for one in found) == sorted(cities)
    table.delete_partitions([cities[1]], exact=True)
    found = answers(uri, "letters", str(tmp_path))["trips"]["partitions"]
    assert sorted(one["values"][0] for one in found) == sorted({*cities} - {cities[1]})


def test_many_partitions_many_requests_and_a_table_that_moves(uri: str, tmp_path: Path) -> None:
    options = {**TRIPS, TYPE: "MERGE_ON_READ", f"{SYNC}enable": "true", f"{SYNC}batch_num": "7",
               f"{SYNC}database": "many", f"{SYNC}metastore.uris": uri}  # fmt: skip
    for place, count in {"one": 30, "two": 20}.items():
        table = HoodieTable(tmp_path / place, options)
        rows = trips(*((str(n), f"c{n}", 1, 1.0) for n in range(count)))
        assert not table.upsert(rows).failed_services
        more = rows.append_column("tip", pa.array([1] * count, pa.int32()))
        assert not table.upsert(more).failed_services
        for told in answers(uri, "many", str(tmp_path / place)).values():
            assert told["location"] == "BASE"
            assert len(told["partitions"]) == count
            assert ["tip", "int", ""] in told["columns"]
            assert all(part["columns"] == told["columns"] for part in told["partitions"])


def test_a_metastore_that_is_down_for_a_while(tmp_path: Path) -> None:
    folder = tmp_path / "metastore"
    folder.mkdir()
    options = {**TRIPS, f"{SYNC}enable": "true", f"{SYNC}database": "down"}
    table = HoodieTable(tmp_path / "table", options)
    where = {f"{SYNC}metastore.uris": f"thrift://127.0.0.1:{free_port()}"}
    for row in (("a", "oslo", 1, 1.0), ("b", "rome", 1, 1.0)):
        (failure,) = table.upsert(trips(row), where).failed_services
        assert "no Hive metastore answers" in failure.reason
    with running_metastore(folder) as uri:
        where = {f"{SYNC}metastore.uris": f"thrift://127.0.0.1:1,{uri}"}
        assert not table.upsert(trips(("c", "bern", 1, 1.0)), where).failed_services
        with metastore_client(uri) as client:
            names = client.get_partition_names("down", "trips", -1)
    assert names == ["city=bern", "city=oslo", "city=rome"]
    assert table.read().num_rows == 3

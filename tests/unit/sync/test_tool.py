"""The sync of a table into a Hive metastore: what is told, when, and what it costs."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import CatalogError, HoodieTable, MissingPackageError, OptionError, Service
from hoodie_ds.config.catalog_options import CatalogOptions
from hoodie_ds.sync import run
from tests.fake_metastore import FakeMetastore, in_place_of_thrift
from tests.tables import TRIPS, TYPE, VERSION, trips

SYNC = "hoodie.datasource.hive_sync."
ON = {**TRIPS, f"{SYNC}enable": "true", f"{SYNC}database": "lake"}
WHERE = ("lake", "trips")


@pytest.fixture
def fake() -> FakeMetastore:
    return FakeMetastore()


def partitions(fake: FakeMetastore, name: str = "trips") -> dict[str, str]:
    found = fake.parts["lake", name].values()
    return {",".join(one.values): one.sd.location for one in found}


def columns(fake: FakeMetastore) -> dict[str, str]:
    return {field.name: field.type for field in fake.tables[WHERE].sd.cols}


def test_each_commit_is_followed_by_a_sync(tmp_path: Path, fake: FakeMetastore) -> None:
    table = HoodieTable(tmp_path, ON)
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0)))
        table.upsert(trips(("b", "rome", 1, 1.0)))
    base = f"file:{tmp_path}"
    assert partitions(fake) == {"oslo": f"{base}/oslo", "rome": f"{base}/rome"}
    noted = fake.tables[WHERE].parameters["last_commit_time_sync"]
    assert noted == table.timeline.latest_time
    assert fake.calls.count("close") == 2


def test_the_cost_of_a_sync_follows_the_new_commits(tmp_path: Path, fake: FakeMetastore) -> None:
    table = HoodieTable(tmp_path, ON)
    with in_place_of_thrift(fake):
        table.upsert(trips(*((str(n), f"city{n}", 1, 1.0) for n in range(40))))
        fake.calls.clear()
        table.upsert(trips(("1", "city1", 2, 1.0)))
        usual = ["get_database", "get_table", "get_partitions_by_names", "alter_table", "close"]
        assert fake.calls == usual
        fake.calls.clear()
        assert not table.sync_catalog()
    assert fake.calls == ["get_database", "get_table", "close"]


def test_an_alteration_is_followed_by_a_sync(tmp_path: Path, fake: FakeMetastore) -> None:
    table = HoodieTable(tmp_path, ON)
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0)))
        before = list(columns(fake).items())
        change = table.alter().rename("fare", "cost").retype("cost", pa.string())
        change.add("tip", pa.int32(), after="id").execute()
        assert columns(fake) == {**dict(before[:-1]), "cost": "string", "tip": "int"}
        assert list(columns(fake))[-4:] == ["id", "tip", "ts", "cost"]
        assert set(partitions(fake)) == {"oslo"}
        table.alter().drop("cost").execute()
    assert list(columns(fake))[-3:] == ["id", "tip", "ts"]
    assert '"name":"tip"' in fake.tables[WHERE].parameters["spark.sql.sources.schema.part.0"]
    noted = fake.tables[WHERE].parameters["last_commit_time_sync"]
    assert noted == table.timeline.latest_time


def test_the_next_sync_makes_up_for_a_failed_one(
    tmp_path: Path, fake: FakeMetastore, caplog: pytest.LogCaptureFixture
) -> None:
    table = HoodieTable(tmp_path, ON)
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0)))
        for number, call in enumerate(("get_table", "add_partitions", "alter_table")):
            fake.failing = {call}
            result = table.upsert(trips((call, f"place{number}", 1, 1.0)))
            (failure,) = result.failed_services
            assert failure.service is Service.CATALOG
            assert f"{call} is out of order" in failure.reason
            assert f"{call} is out of order" in caplog.text
        fake.failing = set()
        assert not table.upsert(trips(("a", "oslo", 2, 1.0))).failed_services
    assert set(partitions(fake)) == {"oslo", "place0", "place1", "place2"}
    assert table.read().num_rows == 4


def test_services_by_hand_need_no_catalog(
    tmp_path: Path, fake: FakeMetastore, caplog: pytest.LogCaptureFixture
) -> None:
    """They change files, of which it knows nothing; what else they change the next write tells."""
    cleaned = {"hoodie.clean.commits.retained": "1"}
    table = HoodieTable(tmp_path, {**ON, **cleaned, TYPE: "MERGE_ON_READ"})
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 0.0)))
        for fare in (1.0, 2.0, 3.0):
            table.upsert(trips(("a", "oslo", 1, fare)))
            assert table.compact()
        fake.failing = {"get_database", "get_table"}
        table.upsert(trips(("a", "oslo", 1, 4.0)))
        assert "out of order" in caplog.text
        fake.calls.clear()
        assert table.clean()
        assert table.compact()
        assert table.rollback()
    assert fake.calls == []


def test_an_unsupported_catalog_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "require_packages", _lacking)
    with pytest.raises(MissingPackageError, match="not installed"):
        HoodieTable(tmp_path / "t", ON).upsert(trips(("a", "oslo", 1, 1.0)))
    assert not (tmp_path / "t").exists()


def _lacking(options: CatalogOptions) -> None:
    raise MissingPackageError("pymetastore is not installed")


def test_added_and_widened_columns_are_synced_with_the_partitions(
    tmp_path: Path, fake: FakeMetastore
) -> None:
    table = HoodieTable(tmp_path, ON)
    rows = trips(("a", "oslo", 1, 1.0))
    narrow = rows.set_column(3, "fare", rows["fare"].cast(pa.float32()))
    with in_place_of_thrift(fake):
        table.upsert(narrow)
        assert columns(fake)["fare"] == "float"
        table.upsert(rows.append_column("tip", pa.array([2], pa.int32())))
    assert columns(fake)["fare"] == "double"
    assert columns(fake)["tip"] == "int"
    (part,) = fake.parts[WHERE].values()
    assert {field.name for field in part.sd.cols} == set(columns(fake))
    schema = fake.tables[WHERE].parameters["spark.sql.sources.schema.part.0"]
    assert '{"name":"tip","type":"integer","nullable":true' in schema


@pytest.mark.parametrize("version", ["6", "9"])
def test_deleted_partitions_are_dropped(tmp_path: Path, fake: FakeMetastore, version: str) -> None:
    table = HoodieTable(tmp_path, {**ON, VERSION: version})
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0), ("b", "rome", 1, 1.0)))
        table.delete_partitions("oslo")
        assert set(partitions(fake)) == {"rome"}
        # What is gone already is no error, and what comes again is added again.
        fake.parts[WHERE].clear()
        table.delete_partitions("rome")
        assert partitions(fake) == {}
        table.upsert(trips(("a", "oslo", 2, 1.0)))
    assert set(partitions(fake)) == {"oslo"}


def test_commits_without_a_sync_are_synced_later(tmp_path: Path, fake: FakeMetastore) -> None:
    table, silent = HoodieTable(tmp_path, ON), HoodieTable(tmp_path, TRIPS)
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0), ("b", "rome", 1, 1.0)))
        silent.upsert(trips(("c", "bern", 1, 1.0)))
        silent.delete_partitions("oslo")
        assert table.sync_catalog(dry=True)
        assert set(partitions(fake)) == {"oslo", "rome"}
        fake.calls.clear()
        (told,) = table.sync_catalog()
    assert "get_partition_names" not in fake.calls
    assert str(told) == "trips: 1 partitions added; 1 partitions dropped"
    assert set(partitions(fake)) == {"bern", "rome"}


def test_a_full_sync_compares_all_partitions(tmp_path: Path, fake: FakeMetastore) -> None:
    table = HoodieTable(tmp_path, ON)
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0), ("b", "rome", 1, 1.0)))
        parts = fake.parts[WHERE]
        parts["city=gone"] = parts.pop("city=oslo")
        parts["city=gone"].values = ["gone"]
        parts["city=rome"].sd.location = "file:/elsewhere/rome"
        assert not table.sync_catalog()  # no commit since the last sync: nothing is looked at
        (told,) = table.sync_catalog({"hoodie.meta.sync.incremental": "false"})
    assert str(told) == ("trips: 1 partitions added; 1 partitions moved; 1 partitions dropped")
    base = f"file:{tmp_path}"
    assert partitions(fake) == {"oslo": f"{base}/oslo", "rome": f"{base}/rome"}


def test_after_a_rollback_of_synced_commits_all_partitions_are_compared(
    tmp_path: Path, fake: FakeMetastore
) -> None:
    table = HoodieTable(tmp_path, ON)
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0)))
        table.upsert(trips(("b", "rome", 1, 1.0)))
        table.rollback()
        assert table.sync_catalog()
    assert set(partitions(fake)) == {"oslo"}


def test_a_table_with_another_location_is_registered_anew(
    tmp_path: Path, fake: FakeMetastore
) -> None:
    with in_place_of_thrift(fake):
        HoodieTable(tmp_path / "old", ON).upsert(trips(("a", "oslo", 1, 1.0)))
        HoodieTable(tmp_path / "new", ON).upsert(trips(("b", "rome", 1, 1.0)))
    assert fake.tables[WHERE].sd.location == f"file:{tmp_path}/new"
    assert set(partitions(fake)) == {"rome"}


def test_a_commit_that_was_pending_at_the_last_sync_is_not_missed(
    tmp_path: Path, fake: FakeMetastore
) -> None:
    table = HoodieTable(tmp_path, {**ON, VERSION: "6"})
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0)))
        HoodieTable(tmp_path, TRIPS).upsert(trips(("b", "rome", 1, 1.0)))
        late = next((tmp_path / ".hoodie").glob(f"{table.timeline.latest_time}.commit"))
        body = late.read_bytes()
        late.unlink()  # as if it were still written
        pending = table.timeline.pending[0].time
        (tmp_path / ".hoodie" / "20990101000000000.commit").write_bytes(
            next((tmp_path / ".hoodie").glob("2*.commit")).read_bytes()
        )
        table.sync_catalog()
        assert set(partitions(fake)) == {"oslo"}
        assert fake.tables[WHERE].parameters["hoodie.py.sync.pending"] == pending
        late.write_bytes(body)
        table.sync_catalog()
    assert set(partitions(fake)) == {"oslo", "rome"}
    assert "hoodie.py.sync.pending" not in fake.tables[WHERE].parameters


def test_only_changes_are_synced_by_option(tmp_path: Path, fake: FakeMetastore) -> None:
    condition = {"hoodie.datasource.meta_sync.condition.sync": "true"}
    table = HoodieTable(tmp_path, {**ON, **condition})
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0)))
        fake.calls.clear()
        table.upsert(trips(("a", "oslo", 2, 1.0)))
        assert "alter_table" not in fake.calls
        table.upsert(trips(("b", "rome", 2, 1.0)))
    assert set(partitions(fake)) == {"oslo", "rome"}


def test_properties_are_synced_with_the_next_commit(tmp_path: Path, fake: FakeMetastore) -> None:
    with in_place_of_thrift(fake):
        HoodieTable(tmp_path, ON).upsert(trips(("a", "oslo", 1, 1.0)))
        more = {f"{SYNC}table_properties": "owner = me\n\nteam=lake"}
        HoodieTable(tmp_path, {**ON, **more}).upsert(trips(("a", "oslo", 2, 1.0)))
    properties = fake.tables[WHERE].parameters
    assert (properties["owner"], properties["team"]) == ("me", "lake")


def test_tables_of_a_merge_on_read_table(tmp_path: Path, fake: FakeMetastore) -> None:
    kinds = {"ALL": {"trips", "trips_ro", "trips_rt"}, "RO": {"trips"}, "RT": {"trips"}}
    for kind, names in kinds.items():
        options = {**ON, TYPE: "MERGE_ON_READ", f"{SYNC}table.strategy": kind,
                   f"{SYNC}database": kind.lower()}  # fmt: skip
        with in_place_of_thrift(fake):
            HoodieTable(tmp_path / kind, options).upsert(trips(("a", "oslo", 1, 1.0)))
        assert set(fake.get_all_tables(kind.lower())) == names
    formats = {key: table.sd.inputFormat.rpartition(".")[2] for key, table in fake.tables.items()}
    assert formats["ro", "trips"] == formats["all", "trips_ro"] == "HoodieParquetInputFormat"
    assert formats["rt", "trips"] == formats["all", "trips_rt"] == formats["all", "trips"]
    assert formats["rt", "trips"] == "HoodieParquetRealtimeInputFormat"


def test_comments_are_synced_and_kept(tmp_path: Path, fake: FakeMetastore) -> None:
    table = HoodieTable(tmp_path, ON)
    with in_place_of_thrift(fake):
        table.upsert(trips(("a", "oslo", 1, 1.0)))
        fake.tables[WHERE].sd.cols[5].comment = "by hand"
        rows = trips(("a", "oslo", 2, 1.0))
        table.upsert(rows.append_column("tip", pa.array([2], pa.int32())))
        assert fake.tables[WHERE].sd.cols[5].comment == "by hand"
        table.delete(rows.select(["id", "city", "ts"]), {f"{SYNC}enable": "false"})
        table.sync_catalog({f"{SYNC}sync_comment": "true"})
    assert fake.tables[WHERE].sd.cols[5].comment == "by hand"


def test_errors_of_a_sync_name_the_remedy(tmp_path: Path, fake: FakeMetastore) -> None:
    table = HoodieTable(tmp_path, TRIPS)
    assert table.upsert(trips(("a", "oslo/1", 1, 1.0)))
    with in_place_of_thrift(fake):
        with pytest.raises(CatalogError, match=r"no database 'lake'.*auto_create_database"):
            table.sync_catalog({f"{SYNC}database": "lake", f"{SYNC}auto_create_database": "false"})
        with pytest.raises(CatalogError, match=r"partition 'oslo/1' has 2 values.*extractor"):
            table.sync_catalog({f"{SYNC}partition_extractor_class": "MultiPartKeysValueExtractor"})
        with pytest.raises(CatalogError, match=r"partition 'oslo/1' has 0 values"):
            table.sync_catalog(
                {f"{SYNC}partition_extractor_class": "SlashEncodedDayPartitionValueExtractor"}
            )
    with pytest.raises(CatalogError, match=r"no Hive metastore answers \(thrift://127.0.0.1:1: "):
        table.sync_catalog({f"{SYNC}metastore.uris": "thrift://127.0.0.1:1"})
    # a program without logging would have Thrift's own line on its terminal, beside the error
    assert any(isinstance(one, logging.NullHandler) for one in logging.getLogger("thrift").handlers)
    refused = {"mode": "jdbc", "use_jdbc": "true", "metastore.uris": "host:1",
               "table_properties": "a", "partition_extractor_class": "Mine"}  # fmt: skip
    for key, text in refused.items():
        with pytest.raises(OptionError, match=key):
            HoodieTable(tmp_path, {f"{SYNC}{key}": text})


def test_a_table_without_a_commit_is_not_registered(tmp_path: Path, fake: FakeMetastore) -> None:
    table = HoodieTable(tmp_path, TRIPS)
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    table.rollback()
    with in_place_of_thrift(fake):
        assert str(table.sync_catalog()).startswith("the table is up to date")
    assert fake.tables == {}


def test_a_missing_package_is_reported_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie_ds.extras.importlib.util.find_spec", lambda name: None)
    for mode, extra in {"hms": "hive", "glue": "glue"}.items():
        table = HoodieTable(tmp_path, {**ON, f"{SYNC}mode": mode})
        with pytest.raises(ImportError, match=rf"pip install '\.\[{extra}\]'"):
            table.upsert(trips(("a", "oslo", 1, 1.0)))
    assert list(tmp_path.iterdir()) == []

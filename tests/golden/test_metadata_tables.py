"""Metadata tables that Apache Hudi wrote have the records that its own reader answers."""

from __future__ import annotations

import base64
import gzip
import json
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.filters.bounds import Bounds, sortable
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.record_index import indexed_groups
from hoodie_ds.metadata_table.statistics import ColumnStatistics, partition_bounds
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.pruner import Pruner
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import FaultyStorage, Kind
from hoodie_ds.timeline.timeline import Timeline
from tests.golden.golden_tables import unzip_table

FOLDER = Path(__file__).resolve().parent / "metadata"
NAMES = sorted(path.stem for path in FOLDER.glob("*.zip"))
BY_FOLDERS = {"hoodie.metadata.enable": "false"}
KEY = "_hoodie_record_key"
OPENED = (Kind.READ, Kind.OPEN)
DECIMAL_SCALE = 15
EVERY = [*NAMES, "v6_cow_metadata", "v9_mor_metadata"]


def unzipped(name: str, folder: Path) -> str:
    """Unzip a table of this folder, or of the golden tables, and return its path."""
    if name not in NAMES:
        return str(unzip_table(name, folder))
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(folder / name)
    return str(folder / name)


def opened(path: str) -> MetadataTable:
    table = open_table(open_storage(path))
    metadata = MetadataTable.open(table, table.load_timeline())
    assert metadata is not None
    return metadata


def in_notation(record: dict[str, Any]) -> dict[str, Any]:
    """A record in the notation of the answers, without the meta columns."""
    statistics, bloom = record["ColumnStatsMetadata"], record["BloomFilterMetadata"]
    if statistics is not None:
        ends = {end: wrapper(statistics[end]) for end in ("minValue", "maxValue")}
        statistics = {**statistics, **ends}
    if bloom is not None:
        bloom = {**bloom, "bloomFilter": base64.b64encode(bloom["bloomFilter"]).decode()}
    named = {k: v for k, v in record.items() if not k.startswith("_hoodie")}
    return {**named, "ColumnStatsMetadata": statistics, "BloomFilterMetadata": bloom}


def wrapper(wrapped: dict[str, Any] | None) -> dict[str, Any] | None:
    if wrapped is None:
        return None
    ((branch, value),) = wrapped.items()
    if isinstance(value, bytes) and branch == "9":
        number = Decimal(int.from_bytes(value, "big", signed=True))
        value = f"{number.scaleb(-DECIMAL_SCALE):.{DECIMAL_SCALE}f}"
    elif isinstance(value, bytes):
        value = base64.b64encode(value).decode()
    return {f"member{int(branch) - 1}": {"value": value}}


@pytest.mark.parametrize("name", NAMES)
def test_every_record_is_what_hudi_answers(tmp_path: Path, name: str) -> None:
    metadata = opened(unzipped(name, tmp_path))
    groups = (group for one in metadata.partitions for group in metadata.records(one))
    ours = {(r["type"], key): in_notation(dict(r)) for group in groups for key, r in group.items()}
    with gzip.open(FOLDER / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        answers = json.load(file)["records"]
    theirs = {(answer["type"], answer["key"]): answer for answer in answers}
    assert ours.keys() == theirs.keys()
    for key, answer in theirs.items():
        assert ours[key] == answer, key


@pytest.mark.parametrize("name", NAMES)
def test_some_keys_are_looked_up_alone(tmp_path: Path, name: str) -> None:
    metadata = opened(unzipped(name, tmp_path))
    for partition in metadata.partitions:
        whole = list(metadata.records(partition))
        keys = {key for group in whole for key in list(group)[::2]}
        expected = [{key: group[key] for key in group if key in keys} for group in whole]
        assert list(metadata.records(partition, {*keys, "no such key"})) == expected


@pytest.mark.parametrize("name", EVERY)
def test_the_metadata_table_lists_what_folders_do(tmp_path: Path, name: str) -> None:
    path = unzipped(name, tmp_path)
    table = open_table(open_storage(path))
    timeline = table.load_timeline()
    listing = MetadataListing.of(opened(path))
    assert listing is not None
    in_folders = FileSystemView(table.storage, timeline).data_files()
    assert listing.files(listing.partitions()) == in_folders
    assert not HoodieTable(path).inspect.verify().damage


@pytest.mark.parametrize("name", EVERY)
def test_reads_are_the_same_by_the_metadata_table(tmp_path: Path, name: str) -> None:
    path = unzipped(name, tmp_path)
    order = [("_hoodie_record_key", "ascending")]
    begin = {"hoodie.datasource.read.begin.instanttime": "000"}
    asked: list[dict[str, str]] = [
        {},
        {"as.of.instant": HoodieTable(path).timeline.completed[-1].time},
        {"hoodie.datasource.query.type": "incremental", **begin},
    ]
    for options in asked:
        expected = HoodieTable(path, {**BY_FOLDERS, **options}).read().sort_by(order)
        assert HoodieTable(path, options).read().sort_by(order).equals(expected)


@pytest.mark.parametrize("name", [name for name in NAMES if "_cs" in name])
def test_bounds_of_base_files_are_those_of_their_values(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie_ds.metadata_table.statistics._FILES_AT_ONCE", 2)
    path = unzipped(name, tmp_path)
    slices = list(PinnedTable.latest(open_storage(path)).slices())
    bases = [found.base for found in slices if found.base is not None]
    columns = HoodieTable(path).read().schema
    known = ColumnStatistics(opened(path)).bounds(bases, columns)
    compared = 0
    for base in bases:
        rows = pq.read_table(f"{path}/{base.path}", partitioning=None)
        for column, bounds in known[base.path].items():
            values, compared = rows.column(column), compared + 1
            assert bounds.nulls == (values.null_count > 0)
            if bounds.values:
                ends = [sortable(pc.min_max(values)[end]) for end in ("min", "max")]
                assert [bounds.low, bounds.high] == ends, column
    assert compared >= 9 * len(bases)


PARTITIONED = [name for name in NAMES if "_cs" in name and not name.startswith("v6")]


def bounds_of_partitions(path: str) -> Mapping[str, Mapping[str, Bounds]]:
    metadata = opened(path)
    listing = MetadataListing.of(metadata)
    assert listing is not None
    return partition_bounds(metadata, listing.partitions(), HoodieTable(path).read().schema)


@pytest.mark.parametrize("name", PARTITIONED)
def test_bounds_of_partitions_hold_all_of_their_values(tmp_path: Path, name: str) -> None:
    path = unzipped(name, tmp_path)
    rows, compared = HoodieTable(path, BY_FOLDERS).read(), 0
    for partition, columns in bounds_of_partitions(path).items():
        within = rows.filter(pc.field("_hoodie_partition_path") == partition)
        for column, bounds in columns.items():
            assert bounds.nulls
            values = [sortable(value) for value in within.column(column) if value.is_valid]
            assert all(bounds.low <= value <= bounds.high for value in values)  # type: ignore[operator]
            compared += bool(values)
    assert compared >= 18


@pytest.mark.parametrize("name", PARTITIONED)
def test_partitions_are_ruled_out_by_what_they_hold(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unzipped(name, tmp_path)
    listed: list[Collection[str]] = []
    files = MetadataListing.files

    def noted(listing: MetadataListing, partitions: Collection[str]) -> list[FileStatus]:
        listed.append(partitions)
        return files(listing, partitions)

    known = bounds_of_partitions(path)
    monkeypatch.setattr(MetadataListing, "files", noted)
    highest = max(known, key=lambda partition: known[partition]["d"].high)  # type: ignore[arg-type,return-value]
    rows = HoodieTable(path, BY_FOLDERS).read()
    wanted = pc.field("d") >= pa.scalar(known[highest]["d"].high, pa.date32())
    pinned = PinnedTable.latest(open_storage(path), metadata=True)
    pruner = pinned.pruner(predicate_of(wanted, pinned.schema))
    assert {one.group.partition_path for one in pinned.slices(pruner)} <= {highest}
    assert list(replace(pinned, merge_hook="of.a.user").slices(pruner))
    assert [list(partitions) for partitions in listed] == [[highest], sorted(known)]
    assert HoodieTable(path).read(filter=wanted).num_rows == rows.filter(wanted).num_rows


@pytest.mark.parametrize("name", [name for name in NAMES if "_cs" in name])
def test_filters_return_the_same_rows_with_statistics(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, draw = unzipped(name, tmp_path), Random(name)
    kept: list[bool] = []
    keeps = Pruner.keeps_slice

    def counted(*args: Any) -> bool:
        kept.append(keeps(*args))
        return kept[-1]

    monkeypatch.setattr(Pruner, "keeps_slice", counted)
    rows = HoodieTable(path, BY_FOLDERS).read()
    for column in (field for field in rows.schema if not pa.types.is_nested(field.type)):
        values = rows.column(column.name).drop_null().unique().to_pylist()
        for value in draw.sample(values, min(3, len(values))):
            compare = draw.choice([pc.equal, pc.less, pc.greater_equal, pc.not_equal])
            wanted = compare(pc.field(column.name), pa.scalar(value, column.type))
            wanted = draw.choice([wanted, wanted, ~wanted, pc.field(column.name).is_null()])
            found = HoodieTable(path).read(filter=wanted)
            expected = rows.filter(wanted)
            assert sorted(found.column(KEY).to_pylist()) == sorted(expected.column(KEY).to_pylist())
    assert all(kept) == (name == "v9_mor_files_cs_ps_ri__logs")  # each of its slices has log files


WITH_KEYS = [name for name in NAMES if "_ri" in name]


@pytest.mark.parametrize("name", WITH_KEYS)
def test_the_record_index_has_the_file_group_of_each_key(tmp_path: Path, name: str) -> None:
    path = unzipped(name, tmp_path)
    metadata, rows = opened(path), HoodieTable(path, BY_FOLDERS).read()
    table = open_table(open_storage(path))
    keys, folders = (rows.column(c).to_pylist() for c in (KEY, "_hoodie_partition_path"))
    files = rows.column("_hoodie_file_name").to_pylist()
    for key, folder, file in zip(keys, folders, files, strict=True):
        assert indexed_groups(table, metadata, [key], ()) == frozenset(
            [FileGroupId(folder, file_id(file))]
        )
    assert indexed_groups(table, metadata, ["no such key"], ()) == frozenset()


@pytest.mark.parametrize("name", WITH_KEYS)
def test_only_file_groups_of_the_keys_are_read(tmp_path: Path, name: str) -> None:
    path = unzipped(name, tmp_path)
    rows = HoodieTable(path, BY_FOLDERS).read()
    for row in rows.to_pylist():
        storage = FaultyStorage(open_storage(path))
        found = HoodieTable(path, storage=storage).read(filter=pc.field("id") == row["id"])
        assert found.to_pylist() == [row]
        read = {one.path for one in storage.recorder.operations if one.kind in OPENED}
        groups = {file_id(file.rpartition("/")[2]) for file in read}
        assert groups & set(map(file_id, rows["_hoodie_file_name"].to_pylist())) == {
            file_id(row["_hoodie_file_name"])
        }


def file_id(name: str) -> str:
    return name.removeprefix(".").partition("_")[0]


@pytest.mark.parametrize("name", WITH_KEYS)
def test_a_record_index_of_a_later_moment_is_not_believed(tmp_path: Path, name: str) -> None:
    path = unzipped(name, tmp_path)
    table = open_table(open_storage(path))
    timeline = table.load_timeline()
    newest = next(timeline.commits_backwards())
    earlier = Timeline.of((i for i in timeline.instants if i != newest), layout=timeline.layout)
    metadata = MetadataTable.open(table, earlier)
    assert metadata is not None
    assert indexed_groups(table, opened(path), ["k001"], ()) is not None
    assert indexed_groups(table, metadata, ["k001"], ()) is None


def test_without_a_record_index_no_key_is_known(tmp_path: Path) -> None:
    path = unzipped("v6_cow_files", tmp_path)
    assert indexed_groups(open_table(open_storage(path)), opened(path), ["k001"], ()) is None


def test_statistics_of_a_later_moment_rule_out_no_partition(tmp_path: Path) -> None:
    path = unzipped("v9_mor_files_cs_ps_ri__logs", tmp_path)
    columns = [pa.field("qty", pa.int64())]
    paths = MetadataListing(opened(path)).partitions()
    assert partition_bounds(opened(path), paths, columns)
    table = open_table(open_storage(path))
    timeline = table.load_timeline()
    newest = next(timeline.commits_backwards())
    earlier = Timeline.of((i for i in timeline.instants if i != newest), layout=timeline.layout)
    metadata = MetadataTable.open(table, earlier)
    assert metadata is not None
    assert partition_bounds(metadata, paths, columns) == {}

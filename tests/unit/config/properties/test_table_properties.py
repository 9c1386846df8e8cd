import dataclasses
import pickle
import zlib
from collections.abc import Callable

import pytest

from hoodie_ds.config.enums import (
    IndexType,
    KeyGeneratorType,
    MergeMode,
    PartialUpdateMode,
    TableType,
)
from hoodie_ds.config.properties.agreement import check_agreement
from hoodie_ds.config.properties.java_properties import format_properties, parse_properties
from hoodie_ds.config.properties.partial_updates import PartialUpdate
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError, OptionError, UnsupportedTableError
from tests.golden.golden_tables import golden_file

_PATH = ".hoodie/hoodie.properties"


def _golden(name: str) -> TableProperties:
    return TableProperties.parse(golden_file(name, f"^{_PATH}$"), _PATH)


_TRIPS = {
    "hoodie.table.name": "trips",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.recordkey.fields": "uuid",
    "hoodie.table.partition.fields": "city",
}
# What Hudi 0.15 writes.
_HUDI_0_15 = {
    **_TRIPS,
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.table.precombine.field": "ts",
    "hoodie.compaction.payload.class": (
        "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    ),
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.database.name": "default",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.checksum": str(zlib.crc32(b"default.trips")),
    "hoodie.table.create.schema": (
        '{"type":"record","name":"trips_record","namespace":"hoodie.trips","fields":'
        '[{"name":"ts","type":["long","null"]},{"name":"uuid","type":["string","null"]}]}'
    ),
}
# What Hudi 1.2 on the JVM writes into a new table of version 6.
_HUDI_1_2 = {
    **_TRIPS,
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "history",
    "hoodie.table.format": "native",
    "hoodie.table.checksum": str(zlib.crc32(b".trips")),
}


def _parse(changes: dict[str, str | None]) -> TableProperties:
    entries = {key: value for key, value in {**_HUDI_1_2, **changes}.items() if value is not None}
    return TableProperties.parse(format_properties(entries), _PATH)


def _new(**changes: object) -> TableProperties:
    options = WriteOptions(base_path="/t", table_name="trips", record_key_fields=("uuid",))
    return TableProperties.create(dataclasses.replace(options, **changes))  # type: ignore[arg-type]


def test_a_table_of_hudi_0_15() -> None:
    table = TableProperties.parse(format_properties(_HUDI_0_15), _PATH)
    assert table.name == "trips"
    assert table.database == "default"
    assert table.table_type is TableType.MERGE_ON_READ
    assert (table.version, table.layout_version) == (6, 1)
    assert table.record_key_fields == ("uuid",)
    assert table.partition_fields == ("city",)
    assert table.key_generator is KeyGeneratorType.SIMPLE
    assert table.ordering_fields == ("ts",)
    # The payload class decides, although the merger strategy says event time.
    assert table.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert table.hive_style
    assert not table.url_encode
    assert table.archive_folder == "archived"
    assert not table.timeline_in_utc
    assert table.num_buckets is None
    assert table.raw["hoodie.table.create.schema"].startswith('{"type":"record"')
    table.check_writable()


def test_a_table_without_payload_class_orders_by_its_ordering_field() -> None:
    entries = {k: v for k, v in _HUDI_0_15.items() if k != "hoodie.compaction.payload.class"}
    table = TableProperties.parse(format_properties(entries), _PATH)
    assert table.merge_mode is MergeMode.EVENT_TIME_ORDERING


def test_a_table_with_keys_of_several_fields() -> None:
    table = _golden("v6_cow_complex_keys")
    assert table.key_generator is KeyGeneratorType.COMPLEX
    assert table.record_key_fields == ("id", "qty")
    assert table.partition_fields == ("city", "name")


def test_a_table_partitioned_by_time() -> None:
    table = _golden("v6_cow_timestamp_keys")
    assert table.key_generator is KeyGeneratorType.TIMESTAMP
    assert table.key_generator_options == {
        "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm:ss.SSSZ",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd/HH",
        "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
        "hoodie.keygen.timebased.timezone": "UTC",
    }


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("v8_mor_bucket", {}),
        ("v9_mor_history", {}),
        ("v9_mor_commit_time", {"merge_mode": MergeMode.COMMIT_TIME_ORDERING}),
        (
            "v9_mor_partial_updates",
            {
                "partial_update_mode": PartialUpdateMode.IGNORE_DEFAULTS,
                "merge_mode": MergeMode.COMMIT_TIME_ORDERING,
            },
        ),
    ],
)
def test_a_new_table_of_a_later_version_is_as_hudi_makes_it(
    name: str, changes: dict[str, object]
) -> None:
    golden = _golden(name)
    golden.check_writable()
    made = _new(
        table_name=golden.name,
        table_version=golden.version,
        table_type=golden.table_type,
        record_key_fields=golden.record_key_fields,
        partition_fields=golden.partition_fields,
        ordering_fields=golden.ordering_fields,
        hive_style=golden.hive_style,
        index_type=IndexType.BLOOM,
        **changes,
    )
    zone, index = "hoodie.table.timeline.timezone", "hoodie.index.type"
    ours = {key: text for key, text in made.raw.items() if key not in (zone, index)}
    assert made.timeline_in_utc
    left_out = {zone, "hoodie.table.checksum"}
    if not golden.partial_update:  # a payload that was given beside the merge mode of the table
        left_out.add("hoodie.table.legacy.payload.class")
    assert ours == {key: text for key, text in golden.raw.items() if key not in left_out}
    assert (made.merge_mode, made.order) == (golden.merge_mode, golden.order)
    assert (made.partial_update is None) == (golden.partial_update is None)


def _merge(table: TableProperties) -> dict[str, str]:
    """What the properties say of the merge."""
    words = ("merge", "merger", "payload", "partial", "ordering", "precombine")
    return {key: text for key, text in table.raw.items() if any(word in key for word in words)}


@pytest.mark.parametrize("version", [8, 9])
def test_a_new_table_of_a_later_version_says_its_custom_merge(version: int) -> None:
    """As a table of a payload of the user's, with a class that no JVM has."""
    table = _new(table_version=version, merge_hook="mine:merge", ordering_fields=("ts",))
    assert _merge(table) == {
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.compaction.payload.class": "hoodie_ds.record.merge_hook.MergeHook",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.py.merge.hook": "mine:merge",
    }
    assert table.order is MergeMode.CUSTOM


@pytest.mark.parametrize(
    ("ordering", "order"), [(("ts",), "EVENT_TIME_ORDERING"), ((), "COMMIT_TIME_ORDERING")]
)
def test_a_new_table_of_version_9_that_fills_what_is_unavailable(
    ordering: tuple[str, ...], order: str
) -> None:
    """Version 9 has a mode for it, so that Hudi on the JVM merges the rows too."""
    fill = PartialUpdateMode.FILL_UNAVAILABLE
    table = _new(table_version=9, partial_update_mode=fill, ordering_fields=ordering)
    marker = "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"
    assert _merge(table) == {
        "hoodie.record.merge.mode": order,
        "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
        marker: "__debezium_unavailable_value",
        **({"hoodie.table.ordering.fields": "ts"} if ordering else {}),
    }
    assert table.partial_update == PartialUpdate(fill, MergeMode(order))


def test_a_new_table_of_version_8_that_fills_what_is_unavailable() -> None:
    """Version 8 has no mode for it, so that no JVM is to merge its rows."""
    fill = PartialUpdateMode.FILL_UNAVAILABLE
    table = _new(table_version=8, partial_update_mode=fill)
    payload = "hoodie_ds.record.partial_update.FillUnavailable"
    merge = _merge(table)
    assert merge["hoodie.compaction.payload.class"] == payload
    assert merge["hoodie.record.merge.mode"] == "CUSTOM"
    assert merge["hoodie.record.merge.strategy.id"] == "00000000-0000-0000-0000-000000000000"
    assert table.partial_update == PartialUpdate(fill, MergeMode.COMMIT_TIME_ORDERING, payload)


def test_keys_of_one_field_in_version_9_have_its_name() -> None:
    fields = ("p", "q")
    assert _new(table_version=9, partition_fields=fields).complex_key_prefixed is True
    with pytest.raises(OptionError, match=r"complex\.keygen\.new\.encoding.*version 9"):
        _new(table_version=9, partition_fields=fields, complex_keygen_new_encoding=True)
    bare = _new(table_version=8, partition_fields=fields, complex_keygen_new_encoding=True)
    assert bare.complex_key_prefixed is False


def test_partition_fields_of_a_later_version_have_their_types() -> None:
    fields = ("city:SIMPLE", "at:TIMESTAMP")
    times = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy",
    }
    changes = {"partition_fields": fields, "key_generator_options": times}
    table = _new(table_version=9, key_generator=KeyGeneratorType.CUSTOM, **changes)
    assert table.raw["hoodie.table.partition.fields"] == "city:SIMPLE,at:TIMESTAMP"
    assert (table.partition_fields, table.partition_field_specs) == (("city", "at"), fields)
    assert table.key_generator is KeyGeneratorType.CUSTOM


def test_the_metadata_partitions_of_a_table() -> None:
    partitions = _golden("v9_mor_metadata").metadata_partitions
    assert partitions == ("column_stats", "files", "partition_stats", "record_index")


def test_a_golden_table_survives_being_written() -> None:
    table = _golden("v6_cow_complex_keys")
    assert TableProperties.parse(table.format(0), _PATH) == table


def test_a_version_6_table_of_hudi_1_2() -> None:
    table = _parse({})
    assert table.key_generator is KeyGeneratorType.SIMPLE
    assert table.ordering_fields == ("ts",)
    assert table.merge_mode is MergeMode.EVENT_TIME_ORDERING
    assert table.archive_folder == "history"
    assert table.database is None
    table.check_writable()


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({"hoodie.compaction.payload.class": "com.example.Mine"}, MergeMode.CUSTOM),
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, MergeMode.COMMIT_TIME_ORDERING),
        ({"hoodie.compaction.payload.class": None}, MergeMode.EVENT_TIME_ORDERING),
        (
            {"hoodie.compaction.payload.class": None, "hoodie.table.ordering.fields": None},
            MergeMode.COMMIT_TIME_ORDERING,
        ),
        (
            {
                "hoodie.compaction.payload.class": None,
                "hoodie.record.merge.strategy.id": "1897ef5f-18bc-4557-939c-9d6a8afd1519",
            },
            MergeMode.CUSTOM,
        ),
    ],
)
def test_what_decides_between_two_rows(changes: dict[str, str | None], mode: MergeMode) -> None:
    assert _parse(changes).merge_mode is mode


@pytest.mark.parametrize(
    "changes",
    [
        {"hoodie.table.name": None},
        {"hoodie.table.type": None},
        {"hoodie.table.version": None},
        {"hoodie.table.version": "six"},
        {"hoodie.table.type": "COPY"},
        {"hoodie.table.checksum": "1"},
        {"hoodie.table.checksum": "x"},
        {"hoodie.database.name": "other"},
        {"hoodie.record.merge.mode": "BY_CHANCE"},
        {"hoodie.populate.meta.fields": "perhaps"},
    ],
)
def test_what_is_no_properties_file_is_refused(changes: dict[str, str | None]) -> None:
    with pytest.raises(CorruptFileError, match="^" + _PATH):
        _parse(changes)


@pytest.mark.parametrize("text", [b"", b"PAR1\x00\xff\x15PAR1", b"{}", "k=\\u12"])
def test_other_files_are_refused(text: bytes | str) -> None:
    with pytest.raises(CorruptFileError, match=_PATH):
        TableProperties.parse(text, _PATH)


def test_an_old_file_has_no_checksum() -> None:
    assert _parse({"hoodie.table.checksum": None}).name == "trips"


def test_the_checksum_is_that_of_tables_written_by_hudi() -> None:
    # Seen in tables of Hudi 0.15 and 1.0 for database "default".
    for name, checksum in (("v6_trips_8i1u", 3843273058), ("v8_trips_8i3u1d", 1197752875)):
        table = _new(table_name=name, database_name="default")
        entries = parse_properties(table.format(0), _PATH)
        assert entries["hoodie.table.checksum"] == str(checksum)


@pytest.mark.parametrize(
    "changes",
    [
        {"hoodie.table.keygenerator.type": "USER_PROVIDED"},
        {
            "hoodie.table.keygenerator.type": None,
            "hoodie.table.keygenerator.class": "com.example.Mine",
        },
        {"hoodie.index.type": "QUANTUM"},
    ],
)
def test_what_is_unknown_here_is_refused(changes: dict[str, str | None]) -> None:
    with pytest.raises(UnsupportedTableError, match=_PATH):
        _parse(changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hoodie.table.version": "5"}, r"table version 5 \(this release handles 6, 8 and 9"),
        ({"hoodie.table.version": "10"}, r"version=9 and hoodie.write.auto.upgrade=false"),
        ({"hoodie.table.version": "7"}, "table version 7"),
        ({"hoodie.table.version": "10"}, "table version 10"),
        ({"hoodie.timeline.layout.version": "2"}, "layout version 2"),
        ({"hoodie.table.version": "9", "hoodie.timeline.layout.version": "1"}, "version 9 has 2"),
        (
            {
                "hoodie.table.version": "8",
                "hoodie.timeline.layout.version": "2",
                "hoodie.timeline.path": "elsewhere",
            },
            "a timeline in elsewhere/history",
        ),
        ({"hoodie.table.format": "iceberg"}, "table format iceberg"),
        ({"hoodie.table.base.file.format": "ORC"}, "ORC"),
        ({"hoodie.table.base.file.format": "LANCE"}, "file format LANCE"),
        ({"hoodie.datasource.write.drop.partition.columns": "true"}, "partition columns"),
        ({"hoodie.bootstrap.base.path": "/elsewhere"}, "bootstrap"),
    ],
)
def test_tables_that_cannot_be_read(changes: dict[str, str | None], reason: str) -> None:
    with pytest.raises(UnsupportedTableError, match=f"{reason}.*; use Apache Hudi on the JVM"):
        _parse(changes).check_readable()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"hoodie.populate.meta.fields": "false", "hoodie.index.type": "BLOOM"},
            "virtual keys and the index BLOOM",
        ),
    ],
)
def test_tables_that_can_only_be_read(changes: dict[str, str | None], reason: str) -> None:
    table = _parse(changes)
    table.check_readable()
    with pytest.raises(UnsupportedTableError, match=reason):
        table.check_writable()


@pytest.mark.parametrize(("version", "layout"), [(6, 1), (8, 2), (9, 2)])
def test_the_layout_of_the_timeline_follows_from_the_version(version: int, layout: int) -> None:
    assert _new(table_version=version, timeline_layout=layout).layout_version == layout
    with pytest.raises(OptionError, match=f"a table of version {version} has {layout}"):
        _new(table_version=version, timeline_layout=3 - layout)


def test_a_new_table_by_event_time() -> None:
    table = _new(
        table_type=TableType.MERGE_ON_READ,
        partition_fields=("city",),
        ordering_fields=("ts",),
        hive_style=True,
    )
    assert table.raw == {
        "hoodie.table.name": "trips",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.archivelog.folder": "archived",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.recordkey.fields": "uuid",
        "hoodie.table.partition.fields": "city",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.table.precombine.field": "ts",
        "hoodie.compaction.payload.class": (
            "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        ),
        "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.bucket.index.hash.field": "uuid",
        "hoodie.datasource.write.recordkey.field": "uuid",
    }
    assert table.merge_mode is MergeMode.EVENT_TIME_ORDERING
    table.check_writable()


def test_a_new_table_by_commit_time_names_no_ordering_field() -> None:
    for table in (
        _new(),
        _new(merge_mode=MergeMode.COMMIT_TIME_ORDERING, ordering_fields=("ts",)),
    ):
        assert table.merge_mode is MergeMode.COMMIT_TIME_ORDERING
        assert table.ordering_fields == ()
        assert table.table_type is TableType.COPY_ON_WRITE
        assert table.key_generator is KeyGeneratorType.NON_PARTITION
        assert not any("precombine" in key or "strategy" in key for key in table.raw)


def test_a_new_table_without_keys() -> None:
    table = _new(record_key_fields=None, partition_fields=("day",))
    assert table.record_key_fields == ()
    assert table.index_type is None
    assert table.num_buckets is None
    assert table.key_generator is KeyGeneratorType.SIMPLE
    with pytest.raises(OptionError, match="BUCKET"):
        _new(record_key_fields=None, index_type=IndexType.BUCKET)


def test_an_index_without_buckets_is_recorded_too() -> None:
    table = _new(index_type=IndexType.BLOOM)
    assert (table.index_type, table.num_buckets) == (IndexType.BLOOM, None)
    assert table.bucket_hash_fields is None


def test_hash_fields_are_kept_in_the_order_of_the_key() -> None:
    table = _new(record_key_fields=("a", "b", "c"), bucket_hash_fields=("c", "a"), num_buckets=16)
    assert table.bucket_hash_fields == ("a", "c")
    assert table.num_buckets == 16


def test_a_new_table_with_a_custom_key_generator_names_its_columns_and_their_types() -> None:
    time = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    fields = ("city:SIMPLE", "ts:TIMESTAMP")
    table = _new(partition_fields=fields, key_generator_options=time)
    assert table.key_generator is KeyGeneratorType.CUSTOM
    assert table.raw["hoodie.table.partition.fields"] == "city,ts"
    assert table.partition_fields == ("city", "ts")
    assert table.partition_field_specs == fields
    assert table.key_generator_options == time
    with pytest.raises(OptionError, match=r"timestamp\.type"):
        _new(partition_fields=fields)


def test_partition_types_as_hudi_1_stores_them() -> None:
    table = _parse({"hoodie.table.partition.fields": "a:SIMPLE,b:TIMESTAMP"})
    assert table.partition_fields == ("a", "b")
    assert table.partition_field_specs == ("a:SIMPLE", "b:TIMESTAMP")


@pytest.mark.parametrize(("new_encoding", "prefixed"), [(None, True), (False, True), (True, False)])
def test_complex_keys_of_one_field_say_how_they_look(
    new_encoding: bool | None, prefixed: bool
) -> None:
    table = _new(partition_fields=("p", "q"), complex_keygen_new_encoding=new_encoding)
    assert table.key_generator is KeyGeneratorType.COMPLEX
    assert table.complex_key_prefixed is prefixed


@pytest.mark.parametrize(
    "changes",
    [
        {"table_name": None},
        {"table_name": "a/b"},
        {"merge_mode": MergeMode.EVENT_TIME_ORDERING},
        {"key_generator": KeyGeneratorType.SIMPLE},
        {"key_generator": KeyGeneratorType.TIMESTAMP, "partition_fields": ("ts",)},
    ],
)
def test_what_makes_no_table_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        _new(**changes)


def test_hostile_names_come_back() -> None:
    name = "a=b:c#!\\ é😀"
    table = _new(table_name=name)
    assert TableProperties.parse(table.format(1), _PATH).name == name


def test_a_file_has_two_comment_lines_and_a_fresh_checksum() -> None:
    lines = _new().format(1_772_863_109_749, "Updated at").decode("ascii").splitlines()
    assert lines[0] == "#Updated at 2026-03-07T05:58:29.749Z"
    assert lines[1] == "#Sat Mar 07 05:58:29 UTC 2026"
    assert f"hoodie.table.checksum={zlib.crc32(b'.trips')}" in lines


def test_changes_keep_unknown_keys() -> None:
    table = _parse({"hoodie.unheard.of": "kept", "hoodie.table.metadata.partitions": "files"})
    changed = table.with_changes({"hoodie.archivelog.folder": "old"})
    assert changed.archive_folder == "old"
    assert changed.raw["hoodie.unheard.of"] == "kept"
    assert table.metadata_partitions == ("files",)
    assert table.without(["hoodie.table.metadata.partitions"]).metadata_partitions == ()
    renamed = changed.with_changes({"hoodie.table.name": "rides"})
    assert TableProperties.parse(renamed.format(0), _PATH).name == "rides"


def test_properties_travel_to_other_processes() -> None:
    table = _new()
    assert pickle.loads(pickle.dumps(table)) == table


_AGREEING: dict[str, object] = {
    "table_name": "trips",
    "database_name": "db",
    "table_type": TableType.COPY_ON_WRITE,
    "table_version": 6,
    "record_key_fields": ("a", "b"),
    "partition_fields": ("p", "q"),
    "ordering_fields": ("ts",),
    "key_generator": KeyGeneratorType.COMPLEX,
    "hive_style": True,
    "url_encode": False,
    "merge_mode": MergeMode.EVENT_TIME_ORDERING,
    "index_type": IndexType.BUCKET,
    "num_buckets": 8,
    "bucket_hash_fields": ("b", "a"),
}


def test_the_options_that_made_a_table_agree_with_it() -> None:
    make: Callable[..., WriteOptions] = WriteOptions
    options = make(base_path="/t", **_AGREEING)
    check_agreement(options, TableProperties.create(options))
    check_agreement(WriteOptions(base_path="/t"), TableProperties.create(options))


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("table_name", "rides", "rides"),
        ("database_name", "other", "other"),
        ("table_type", TableType.MERGE_ON_READ, "MERGE_ON_READ"),
        ("record_key_fields", ("b", "a"), "b,a"),
        ("partition_fields", ("p",), "'p'"),
        ("partition_fields", (), "''"),
        ("ordering_fields", ("other",), "other"),
        ("key_generator", KeyGeneratorType.CUSTOM, "CUSTOM"),
        ("hive_style", False, "False"),
        ("url_encode", True, "True"),
        ("merge_mode", MergeMode.COMMIT_TIME_ORDERING, "COMMIT_TIME_ORDERING"),
        ("index_type", IndexType.BLOOM, "BLOOM"),
        ("num_buckets", 4, "4"),
        ("bucket_hash_fields", ("a",), "'a'"),
    ],
)
def test_a_contradicting_option_is_refused(field: str, value: object, shown: str) -> None:
    make: Callable[..., WriteOptions] = WriteOptions
    table = TableProperties.create(make(base_path="/t", **_AGREEING))
    with pytest.raises(OptionError) as caught:
        check_agreement(make(base_path="/t", **{field: value}), table)
    assert shown in str(caught.value)
    assert "'trips'" in str(caught.value)


def test_an_ordering_field_agrees_with_a_table_by_commit_time() -> None:
    options = WriteOptions(
        base_path="/t",
        table_name="t",
        record_key_fields=("id",),
        ordering_fields=("ts",),
        merge_mode=MergeMode.COMMIT_TIME_ORDERING,
    )
    check_agreement(options, TableProperties.create(options))


def test_partition_types_are_compared_where_both_name_them() -> None:
    table = _parse(
        {"hoodie.table.partition.fields": "a:SIMPLE", "hoodie.table.keygenerator.type": "CUSTOM"}
    )
    check_agreement(WriteOptions(base_path="/t", partition_fields=("a:simple",)), table)
    check_agreement(WriteOptions(base_path="/t", partition_fields=("a",)), table)
    with pytest.raises(OptionError, match="a:TIMESTAMP"):
        check_agreement(WriteOptions(base_path="/t", partition_fields=("a:TIMESTAMP",)), table)

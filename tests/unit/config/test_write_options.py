import pickle

import pytest

from hoodie_ds.config.enums import (
    IndexType,
    KeyGeneratorType,
    LogBlockFormat,
    MergeMode,
    Operation,
    ParquetCodec,
    TableType,
)
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError
from hoodie_ds.index.choice import bloom_params


def _write(raw: dict[str, object]) -> WriteOptions:
    return WriteOptions.parse({"path": "/t", **raw})


def test_spark_names() -> None:
    options = _write(
        {
            "hoodie.table.name": "trips",
            "hoodie.database.name": "db",
            "hoodie.datasource.write.table.type": "merge_on_read",
            "hoodie.datasource.write.operation": "UPSERT",
            "hoodie.datasource.write.recordkey.field": "id, name",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": True,
            "hoodie.datasource.write.partitionpath.urlencode": "false",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": 8,
            "hoodie.bucket.index.hash.field": "name",
            "hoodie.write.table.version": "6",
            "hoodie.metadata.enable": "false",
            "hoodie.logfile.data.block.format": "avro",
            "hoodie.parquet.compression.codec": "UNCOMPRESSED",
            "hoodie.logfile.max.size": "1048576",
        }
    )
    assert options == WriteOptions(
        base_path="/t",
        table_name="trips",
        database_name="db",
        table_type=TableType.MERGE_ON_READ,
        operation=Operation.UPSERT,
        record_key_fields=("id", "name"),
        partition_fields=("city",),
        ordering_fields=("ts",),
        hive_style=True,
        url_encode=False,
        index_type=IndexType.BUCKET,
        num_buckets=8,
        bucket_hash_fields=("name",),
        table_version=6,
        metadata_enable=False,
        log_block_format=LogBlockFormat.AVRO,
        parquet_codec=ParquetCodec.NONE,
        logfile_max_bytes=1 << 20,
    )
    assert pickle.loads(pickle.dumps(options)) == options
    assert vars(pickle.loads(pickle.dumps(options))) == vars(options)


def test_options_travel_with_each_task_without_their_defaults() -> None:
    options = WriteOptions.parse({"path": "/t", "hoodie.clean.commits.retained": "7"})
    travelled = pickle.dumps(options)
    assert len(travelled) < 500
    assert pickle.loads(travelled) == options


def test_flink_names() -> None:
    options = _write(
        {
            "table.type": "MERGE_ON_READ",
            "write.operation": "insert",
            "precombine.field": "ts",
            "index.type": "FLINK_STATE",
            "write.batch.size": "64.0",
            "write.task.max.size": "512MB",
            "write.log.max.size": "2",
            "metadata.enabled": "false",
        }
    )
    assert options.table_type is TableType.MERGE_ON_READ
    assert options.operation is Operation.INSERT
    assert options.ordering_fields == ("ts",)
    assert options.index_type is IndexType.FLINK_STATE
    assert options.batch_bytes == 64 << 20
    assert options.task_max_bytes == 512 << 20
    assert options.logfile_max_bytes == 2 << 20
    assert options.metadata_enable is False


def test_defaults_of_sizes_and_formats() -> None:
    options = _write({})
    assert options.table_type is None
    assert options.partition_fields is None
    assert (options.batch_bytes, options.task_max_bytes) == (268_435_456, 1_073_741_824)
    assert (options.logfile_max_bytes, options.log_block_max_bytes) == (1_073_741_824, 268_435_456)
    assert options.parquet_block_bytes == 125_829_120
    assert options.log_block_format is None
    assert options.parquet_codec is ParquetCodec.SNAPPY
    assert not options.set_null_for_missing_columns
    assert not options.allow_non_atomic_storage


def test_the_path_is_needed() -> None:
    for parse in (WriteOptions.parse, ReadOptions.parse):
        with pytest.raises(OptionError, match="'path' is not set"):
            parse({"hoodie.table.name": "t"})


def test_an_empty_list_of_partition_fields_is_an_answer() -> None:
    assert _write({"hoodie.datasource.write.partitionpath.field": ""}).partition_fields == ()
    with pytest.raises(OptionError, match="recordkey"):
        _write({"hoodie.datasource.write.recordkey.field": ""})


@pytest.mark.parametrize(
    ("raw", "generator"),
    [
        ({"keygenerator.type": "complex"}, KeyGeneratorType.COMPLEX),
        ({"keygenerator.type": "TIMESTAMP_AVRO"}, KeyGeneratorType.TIMESTAMP),
        (
            {"keygenerator.class": "org.apache.hudi.keygen.ComplexAvroKeyGenerator"},
            KeyGeneratorType.COMPLEX,
        ),
        (
            {
                "keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
                "keygenerator.type": "SIMPLE",
            },
            KeyGeneratorType.SIMPLE,
        ),
    ],
)
def test_key_generators(raw: dict[str, str], generator: KeyGeneratorType) -> None:
    options = _write({"hoodie.datasource.write." + key: value for key, value in raw.items()})
    assert options.key_generator is generator


@pytest.mark.parametrize(
    ("payload", "mode"),
    [
        ("OverwriteWithLatestAvroPayload", MergeMode.COMMIT_TIME_ORDERING),
        ("DefaultHoodieRecordPayload", MergeMode.EVENT_TIME_ORDERING),
        ("EventTimeAvroPayload", MergeMode.EVENT_TIME_ORDERING),
        ("PartialUpdateAvroPayload", MergeMode.CUSTOM),
        ("OverwriteNonDefaultsWithLatestAvroPayload", MergeMode.CUSTOM),
    ],
)
def test_payload_classes_stand_for_merge_modes(payload: str, mode: MergeMode) -> None:
    name = "org.apache.hudi.common.model." + payload
    assert _write({"hoodie.datasource.write.payload.class": name}).merge_mode is mode


@pytest.mark.parametrize(
    "raw",
    [
        {"hoodie.datasource.write.keygenerator.class": "com.example.SimpleKeyGenerator"},
        {
            "hoodie.datasource.write.keygenerator.class": KeyGeneratorType.SIMPLE.java_class,
            "hoodie.datasource.write.keygenerator.type": "COMPLEX",
        },
        {"payload.class": "com.example.DefaultHoodieRecordPayload"},
        {
            "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
            "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        },
        {
            "payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
            "write.payload.class": "org.apache.hudi.common.model."
            "OverwriteNonDefaultsWithLatestAvroPayload",
        },
        {"hoodie.write.record.merge.mode": "MINE"},
        {"hoodie.write.lock.filesystem.expire": "soon"},
        {"hoodie.py.merge.hook": "mine.merge"},
        {"hoodie.py.merge.hook": "mine:merge()"},
        {"hoodie.py.merge.hook": ":merge"},
        {"hoodie.write.table.version": "10"},
        {"hoodie.bucket.index.num.buckets": "0"},
        {"hoodie.bucket.index.num.buckets": "100000000"},
        {"precombine.field": "a", "hoodie.table.ordering.fields": "b"},
        {"table.type": "COPY_ON_WRITE", "hoodie.table.type": "MERGE_ON_READ"},
        {
            "hoodie.datasource.write.recordkey.field": "a,b",
            "hoodie.bucket.index.hash.field": "c",
        },
        {
            "hoodie.datasource.write.keygenerator.type": "SIMPLE",
            "hoodie.datasource.write.recordkey.field": "a,b",
        },
        {
            "hoodie.datasource.write.keygenerator.type": "NON_PARTITION",
            "hoodie.datasource.write.partitionpath.field": "a",
        },
        {
            "hoodie.datasource.write.keygenerator.type": "CUSTOM",
            "hoodie.datasource.write.partitionpath.field": "a:SIMPLE,b",
        },
        {"hoodie.datasource.write.partitionpath.field": "a:DATE"},
        {
            "hoodie.datasource.write.keygenerator.type": "COMPLEX",
            "hoodie.datasource.write.partitionpath.field": "a:SIMPLE",
        },
        {
            "hoodie.keygen.timebased.timezone": "UTC",
            "hoodie.deltastreamer.keygen.timebased.timezone": "GMT",
        },
        {"path": ["/t"]},
    ],
)
def test_contradictions_and_what_is_not_done_are_refused(raw: dict[str, object]) -> None:
    with pytest.raises(OptionError) as caught:
        _write(raw)
    assert caught.value.key in raw


def test_one_thing_said_twice_alike_is_accepted() -> None:
    options = _write({"write.log.max.size": "1024", "hoodie.logfile.max.size": "1073741824"})
    assert options.logfile_max_bytes == 1 << 30


def test_typed_partition_fields_are_kept_as_text() -> None:
    options = _write({"hoodie.datasource.write.partitionpath.field": "a:SIMPLE,b:timestamp"})
    assert options.partition_fields == ("a:SIMPLE", "b:timestamp")


def test_options_of_the_time_based_key_generator() -> None:
    options = _write(
        {
            "hoodie.deltastreamer.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        }
    )
    assert options.key_generator_options == {
        "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }


@pytest.mark.parametrize("share", ["5e-324", "9e-19", "0", "1", "nan", "-0.1"])
def test_a_bloom_filter_has_a_rate_for_which_it_stays_small(share: str) -> None:
    key = "hoodie.index.bloom.fpp"
    with pytest.raises(OptionError, match=rf"'{key}' = '{share}'.* 1e-18 to less than 1"):
        _write({key: share})
    params = bloom_params(_write({key: "1e-18"}))
    assert (params.num_hashes, params.num_bits // 60_000) == (60, 86)


def test_storage_options_are_never_shown() -> None:
    raw = {"path": "/t", "hoodie.py.storage.option.secret": "hush"}
    for options in (WriteOptions.parse(raw), ReadOptions.parse(raw)):
        assert options.storage_options == {"secret": "hush"}
        assert "hush" not in repr(options)
    with pytest.raises(OptionError) as caught:
        WriteOptions.parse({**raw, "HOODIE.py.storage.option.secret": "whisper"})
    assert "hush" not in str(caught.value)
    assert "whisper" not in str(caught.value)


def test_extra_metadata_only_with_a_prefix_of_its_own() -> None:
    prefix = "hoodie.datasource.write.commitmeta.key.prefix"
    assert _write({"_job": "7"}).extra_metadata == {}
    assert _write({"_job": "7", "other": "8", prefix: "_"}).extra_metadata == {"_job": "7"}
    for bad in ("hoodie.py.", "h", "hoodie."):
        with pytest.raises(OptionError, match="prefix"):
            _write({prefix: bad})


def test_reads_return_snapshots_unless_asked_otherwise() -> None:
    key = "hoodie.datasource.query.type"
    assert ReadOptions.parse({"path": "/t", key: "SNAPSHOT"}) == ReadOptions(base_path="/t")
    with pytest.raises(OptionError, match="say where the incremental query begins"):
        ReadOptions.parse({"path": "/t", key: "incremental"})


def test_there_is_one_record_index() -> None:
    switches = dict.fromkeys(
        (
            "hoodie.metadata.global.record.level.index.enable",
            "hoodie.metadata.record.level.index.enable",
        ),
        "true",
    )
    with pytest.raises(OptionError, match="there is one record index"):
        WriteOptions.parse({"path": "/t", **switches})


@pytest.mark.parametrize(
    "name", ["RECORD_INDEX", "global_record_level_index", "record_level_index"]
)
def test_the_record_index_has_several_names(name: str) -> None:
    options = WriteOptions.parse({"path": "/t", "hoodie.index.type": name})
    assert options.index_type is not None
    assert options.index_type.is_record_index

import contextlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.config.given_options import OptionGroup
from hoodie_ds.config.ignored_options import IGNORED
from hoodie_ds.config.known_options import READ_OPTIONS, WRITE_OPTIONS, check_keys, collect
from hoodie_ds.config.option import Option
from hoodie_ds.config.query_options import IncrementalOptions
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.restricted_options import BOTH_RESTRICTED, READ_RESTRICTED, WRITE_RESTRICTED
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError

_HERE = Path(__file__).parent

# All names that Hudi 1.2 has or had for its options, as an interop test compares with its jar.
_HUDI_KEYS = (_HERE / "hudi_keys.txt").read_text().splitlines()

# Flink's names that mean something here: implemented, or refused unless they ask for the usual.
_FLINK_KEYS = (_HERE / "flink_keys.txt").read_text().splitlines()

_TABLES = (WRITE_RESTRICTED, READ_RESTRICTED, BOTH_RESTRICTED)


def _obeyed() -> list[str]:
    names = {name for o in (*WRITE_OPTIONS, *READ_OPTIONS) for name in o.names}
    return [*names, *(key for table in _TABLES for key in table)]


def test_the_keys_of_hudi_are_known() -> None:
    given = collect({key.lower(): "x" for key in _HUDI_KEYS})
    assert [problem.key for problem in given.problems] == ["hoodie.base.path"]
    assert "its name is path now" in str(given.problems[0])
    assert {given.text(key) for key in _HUDI_KEYS} == {"x"}


def test_the_names_of_flink_are_heeded() -> None:
    assert set(_FLINK_KEYS) <= {*_obeyed(), *IGNORED}


def test_no_key_is_both_obeyed_and_ignored() -> None:
    obeyed = [key.lower() for key in _obeyed() if key != "path"]
    assert sorted(set(obeyed)) == sorted(obeyed)
    assert not set(obeyed) & {key.lower() for key in IGNORED}


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("hoodie.tabel.name", "hoodie.table.name"),
        ("hoodie.datasource.write.precombin.field", "hoodie.datasource.write.precombine.field"),
        ("hoodie.datasource.streaming.startoffsets", "hoodie.datasource.streaming.startOffset"),
        ("Hoodie.Metadata.Enabled", "hoodie.metadata.enable"),
        ("hoodie.keygen.timebased.output.dateformats", "hoodie.keygen.timebased.output.dateformat"),
    ],
)
def test_an_unknown_key_is_refused_naming_the_nearest(key: str, nearest: str) -> None:
    with pytest.raises(OptionError) as caught:
        collect({key: "given"}).check()
    assert str(caught.value).startswith(f"option {key!r} = 'given' is refused: ")
    assert str(caught.value).endswith(f" {nearest}")


def test_keys_of_others_pass() -> None:
    raw = {"checkpointLocation": "/c", "path": "/t", "mergeSchema": "x", "user": None}
    assert WriteOptions.parse(raw) == WriteOptions(base_path="/t")
    assert ReadOptions.parse(raw) == ReadOptions(base_path="/t")


@pytest.mark.parametrize(
    ("key", "value", "meant"),
    [
        ("write.operations", "delete", "the nearest known is write.operation"),
        ("ordering.field", "ts", "the nearest known is ordering.fields"),
        ("index.typ", "BLOOM", "the nearest known is index.type"),
        ("write.batchsize", "64", "the nearest known is write.batch.size"),
        ("hudi.index.type", "BLOOM", "the nearest known is hoodie.index.type"),
        ("datasource.write.operation", "x", "the nearest known is hoodie.datasource.write.op"),
        ("primaryKey", "id", "Hudi's SQL; write hoodie.datasource.write.recordkey.field"),
        ("preCombineField", "ts", "Hudi's SQL; write hoodie.datasource.write.precombine.field"),
        ("type", "MOR", "Hudi's SQL; write hoodie.datasource.write.table.type"),
    ],
)
def test_a_key_without_the_prefix_that_means_one_of_ours_is_refused(
    key: str, value: str, meant: str
) -> None:
    for parse in (WriteOptions.parse, ReadOptions.parse):
        with pytest.raises(OptionError) as caught:
            parse({"path": "/t", key: value})
        assert (caught.value.key, caught.value.value) == (key, value)
        assert meant in caught.value.remedy


@pytest.mark.parametrize(
    ("key", "value", "is_shown"),
    [
        ("hoodie.tabel.name", "trips", True),
        ("hoodie.index.tpye", "BLOOM", True),
        ("hoodie.write.tasks.maximum.of.all", "7", True),
        ("hoodie.py.catalog.pasword", "hush", False),
        ("hoodie.s3.secretKey", "hush", False),
        ("hoodie.dbpasswordprod", "hush", False),
        ("hoodie.fs.s3a.acess.key", "hush", False),
        ("hoodie.storage.toekn", "hush", False),
        ("hoodie.storage.url", "https://me:hush@host", False),
        ("hoodie.storage.url", "https://host/t?sig=hush", False),
        ("hoodie.kafka.config", 'required name="me" password="hush";', False),
        ("hoodie.datasource.write.recordkey.feild", "user_id", True),
    ],
)
def test_only_secrets_are_hidden(key: str, value: str, is_shown: bool) -> None:
    with pytest.raises(OptionError) as caught:
        WriteOptions.parse({"path": "/t", key: value})
    assert (repr(value) in str(caught.value)) is is_shown
    assert ("'***'" in str(caught.value)) is not is_shown


@pytest.mark.parametrize(
    "key",
    [
        "type",
        "paths",
        "queryName",
        "parquet.block.size",
        "fs.s3a.endpoint",
        "kafka.bootstrap.servers",
    ],
)
def test_keys_of_spark_and_hadoop_pass_where_spark_hands_them_over(key: str) -> None:
    raw = {"path": "/t", key: "x"}
    assert WriteOptions.parse(raw) == WriteOptions(base_path="/t")
    with pytest.raises(OptionError, match="unknown option") as caught:
        check_keys(raw)
    assert caught.value.key == key


@pytest.mark.parametrize("key", [*WRITE_RESTRICTED, *BOTH_RESTRICTED])
def test_what_is_not_done_yet_is_refused_by_a_write(key: str) -> None:
    accepted = {**WRITE_RESTRICTED, **BOTH_RESTRICTED}[key].accepted
    for value in accepted:
        WriteOptions.parse({"path": "/t", key.lower(): value.upper()})
    with pytest.raises(OptionError, match="not supported yet") as caught:
        WriteOptions.parse({"path": "/t", key: "another"})
    assert caught.value.key == key


@pytest.mark.parametrize("key", [*READ_RESTRICTED, *BOTH_RESTRICTED])
def test_what_is_not_done_yet_is_refused_by_a_read(key: str) -> None:
    accepted = {**READ_RESTRICTED, **BOTH_RESTRICTED}[key].accepted
    for value in accepted:
        ReadOptions.parse({"path": "/t", key.lower(): value.upper()})
    with pytest.raises(OptionError, match="not supported yet") as caught:
        ReadOptions.parse({"path": "/t", key: "another"})
    assert caught.value.key == key


def test_what_is_known_passes_where_nobody_else_reads_the_keys() -> None:
    keys = [*_obeyed(), *IGNORED, "hive_sync.db", "hoodie.py.storage.option.key"]
    check_keys({**dict.fromkeys(keys, "x"), "of_nobody": None})


def test_all_unknown_keys_are_told_where_nobody_else_reads_them() -> None:
    with pytest.raises(OptionError) as caught:
        check_keys({"write.tsaks": "1", "mergeSchema": "true", "hoodie.tabel.name": "t"})
    remedies = {part.key: part.remedy for part in caught.value.parts}
    assert remedies["write.tsaks"] == "unknown option; the nearest known is write.tasks"
    assert remedies["mergeSchema"].startswith("unknown option; leave it out")
    assert remedies["hoodie.tabel.name"].endswith("hoodie.table.name")


def test_one_key_in_two_letter_cases_must_agree() -> None:
    assert collect({"hoodie.TABLE.name": "a", "hoodie.table.name": "a"})
    with pytest.raises(OptionError, match="twice"):
        collect({"hoodie.TABLE.name": "a", "hoodie.table.name": "b"}).check()


@given(
    st.dictionaries(st.text() | st.sampled_from(_HUDI_KEYS), st.text() | st.floats(), max_size=5)
)
def test_any_options_are_parsed_or_a_typed_error(raw: dict[str, object]) -> None:
    for parse in (WriteOptions.parse, ReadOptions.parse):
        with contextlib.suppress(OptionError):
            assert parse({"path": "/t", **raw})


def test_huge_keys_and_values_are_refused_shortly() -> None:
    with pytest.raises(OptionError) as caught:
        collect({"hoodie." + "k" * (1 << 20): "v"}).check()
    assert len(str(caught.value)) < 1000
    with pytest.raises(OptionError) as caught:
        WriteOptions.parse({"path": "/t", "hoodie.index.type": "v" * (1 << 20)})
    assert len(str(caught.value)) < 1000


def test_every_option_that_is_parsed_is_known() -> None:
    assert declared(WriteOptions) <= set(WRITE_OPTIONS)
    assert declared(ReadOptions) | declared(IncrementalOptions) <= set(READ_OPTIONS)


def declared(group: type[OptionGroup]) -> set[Option[Any]]:
    """The options of a group, of its bases and of the groups in its fields."""
    own = {one for base in group.__mro__ for one in vars(base).values() if isinstance(one, Option)}
    parts: list[object] = [field.default_factory for field in fields(group)]
    inner = (declared(p) for p in parts if isinstance(p, type) and issubclass(p, OptionGroup))
    return own.union(*inner)


def test_settings_of_the_session_yield_to_options_of_the_call() -> None:
    options = WriteOptions.parse(
        {
            "path": "/t",
            "spark.hoodie.datasource.write.precombine.field": "a",
            "ordering.fields": "b",
            "spark.hoodie.parquet.max.file.size": "64",  # Flink's name counts megabytes
            "spark.hoodie.py.storage.option.Region": "eu",
            "spark.hoodie.datasource.write.recordkey.field": "id",
            "hoodie.table.recordkey.fields": None,
        }
    )
    assert options.ordering_fields == ("b",)
    assert options.record_key_fields == ("id",)
    assert options.parquet_max_file_bytes == 64
    assert options.storage_options == {"Region": "eu"}


def test_a_wrong_setting_of_the_session_is_named_as_such() -> None:
    given = collect({"spark.hoodie.index.type": "TREE", "spark.hoodie.base.path": "/user:pw@host"})
    WriteOptions.of(given)
    told = {problem.key for problem in given.problems}
    assert told == {"spark.hoodie.base.path", "spark.hoodie.index.type", "path"}
    assert "pw" not in str(given.problems[0])


def test_an_unknown_setting_of_the_session_is_named_in_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(2):
        given = collect({"spark.hoodie.index.tipe": "BUCKET", "spark.sql.hoodie.x": "1"})
        assert not given.problems
        assert list(given.entries) == ["spark.sql.hoodie.x"]
    (told,) = (record.getMessage() for record in caplog.records)
    assert "spark.hoodie.index.tipe (the nearest known is hoodie.index.type)" in told


def test_settings_of_the_session_for_other_queries_pass() -> None:
    of_batches = {
        "spark.hoodie.datasource.read.begin.instanttime": "000",
        "spark.hoodie.datasource.read.end.instanttime": "20260101000000",
    }
    table = {"path": "/t"}
    assert ReadOptions.parse({**table, **of_batches}).incremental is None
    assert ReadOptions.parse({**table, **of_batches}, is_stream=True).incremental is None
    with pytest.raises(OptionError, match="belongs to an incremental query"):
        ReadOptions.parse({**table, "hoodie.datasource.read.end.instanttime": "20260101000000"})

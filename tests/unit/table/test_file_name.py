from __future__ import annotations

import pytest

from hoodie_ds.table.file_name import BaseFileName, CdcFileName, LogFileName, written_by

# Names that Hudi 1.2 and Hudi 0.x wrote.
BASE = "00000001-5a1c-4c2e-9f3e-0d6f3f0a2b11-0_1-12-34_20260307135827749.parquet"
LOG = ".00000001-5a1c-4c2e-9f3e-0d6f3f0a2b11-0_20260307135827749.log.3_0-5-6"


def test_a_base_file_name_is_read_and_written() -> None:
    name = BaseFileName.parse(BASE)
    assert name == BaseFileName(
        "00000001-5a1c-4c2e-9f3e-0d6f3f0a2b11-0", "1-12-34", "20260307135827749"
    )
    assert str(name) == BASE


def test_a_base_file_of_a_metadata_table_has_another_extension() -> None:
    text = "files-0000-0_0-8411-13044_20261122054112329001.hfile"
    name = BaseFileName.parse(text, "hfile")
    assert name == BaseFileName("files-0000-0", "0-8411-13044", "20261122054112329001", "hfile")
    assert str(name) == text
    assert BaseFileName.parse(text) is None
    assert BaseFileName.parse(BASE, "hfile") is None


def test_a_log_file_name_is_read_and_written() -> None:
    name = LogFileName.parse(LOG)
    assert name == LogFileName(
        "00000001-5a1c-4c2e-9f3e-0d6f3f0a2b11-0", "20260307135827749", 3, "0-5-6"
    )
    assert str(name) == LOG


def test_a_log_file_of_a_very_old_writer_has_no_token() -> None:
    name = LogFileName.parse(".f1_20190101000000.log.1")
    assert name == LogFileName("f1", "20190101000000", 1, "")


def test_the_name_of_a_file_of_change_data_is_read_and_written() -> None:
    name = CdcFileName.parse(LOG + ".cdc")
    assert name == CdcFileName(
        "00000001-5a1c-4c2e-9f3e-0d6f3f0a2b11-0", "20260307135827749", "0-5-6", 3
    )
    assert str(name) == LOG + ".cdc"
    assert CdcFileName.parse(LOG) is None
    assert CdcFileName.parse(BASE) is None


def test_which_names_tell_their_writer() -> None:
    found = [written_by(name) for name in (BASE, LOG + ".cdc", LOG, "_SUCCESS")]
    assert found == ["20260307135827749", "20260307135827749", None, None]


@pytest.mark.parametrize(
    "name",
    [
        ".hoodie_partition_metadata",
        "_SUCCESS",
        "part-00000.parquet",
        BASE + ".crc",
        "." + BASE + ".crc",
        "." + BASE,
        LOG + ".cdc",
        "." + LOG + ".crc",
        LOG[1:],
        BASE.replace(".parquet", ".orc"),
        "f_1_2_3-4-5_20260307135827749.parquet",
        "",
    ],
)
def test_other_names_are_neither(name: str) -> None:
    assert BaseFileName.parse(name) is None
    assert LogFileName.parse(name) is None

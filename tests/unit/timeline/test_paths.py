from __future__ import annotations

from hoodie_ds.timeline.paths import in_partition, marked_file, marker_path


def test_a_marker_tells_its_file() -> None:
    for path in (
        "g_0-1-1_1.parquet",
        "a/b=c/.g_1.log.1_0-1-1",
        "x.marker.CREATE/g_0-1-1_1.parquet",
    ):
        assert marked_file("1", marker_path("1", path, "CREATE")) == path


def test_other_files_of_the_folder_tell_none() -> None:
    assert marked_file("1", ".hoodie/.temp/1/manifest.json") is None
    assert marked_file("1", marker_path("2", "g.parquet", "CREATE")) is None


def test_the_path_without_partition_is_the_name() -> None:
    assert in_partition("", "n") == "n"
    assert in_partition("a/b", "n") == "a/b/n"

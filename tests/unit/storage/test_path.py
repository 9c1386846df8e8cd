import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.errors import PathEscapeError
from hoodie_ds.storage.path import check_path, is_unfinished


@pytest.mark.parametrize(
    "path", ["a", "a/b.parquet", ".hoodie/x", "city=São Paulo/..a", "a:b/8:30", "%2e%2e/x", "..."]
)
def test_paths_below_the_root_pass(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "a/../../b",
        "./a",
        "a//b",
        "a/",
        "C:",
        "c:/x",
        "C:\\x",
        "a\\..\\b",
        "a\x00b",
        "a/\ud800",
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(PathEscapeError, match="refused"):
        check_path(path)


def test_the_root_itself_is_a_place_only_where_allowed() -> None:
    assert check_path("", root_allowed=True) == ""


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b", "\\", "C:"]), max_size=6).map("/".join))
def test_accepted_paths_stay_inside_the_root(path: str) -> None:
    with contextlib.suppress(PathEscapeError):
        parts = check_path(path).split("/")
        assert set(parts) <= {"a", "b", "C:"}


def test_unfinished_files_are_the_storages_own() -> None:
    assert is_unfinished(".12-0.tmp")
    assert not is_unfinished("12-0.tmp")
    assert not is_unfinished(".f-0_20240101000000000.log.1_0-0-0")

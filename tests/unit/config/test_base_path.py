import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.config.base_path import check_base_path, scheme_of
from hoodie_ds.errors import OptionError


@pytest.mark.parametrize(
    ("text", "place", "scheme"),
    [
        ("/a/b/", "/a/b", "file"),
        ("/", "/", "file"),
        ("relative/x:y", "relative/x:y", "file"),
        ("file:///a/", "file:///a", "file"),
        ("file:/a", "file:/a", "file"),
        ("S3A://bucket/t/", "s3a://bucket/t", "s3a"),
        ("gs://bucket//a///t", "gs://bucket/a/t", "gs"),
        ("hdfs:////a//t/", "hdfs:///a/t", "hdfs"),
        (
            "abfss://box@acc.dfs.core.windows.net/t",
            "abfss://box@acc.dfs.core.windows.net/t",
            "abfss",
        ),
    ],
)
def test_places(text: str, place: str, scheme: str) -> None:
    assert check_base_path(text) == place
    assert scheme_of(text) == scheme


@pytest.mark.parametrize(
    "text",
    [
        "s3://key:hush@bucket/t",
        "s3://bucket/t?sig=hush",
        "s3://bucket/t#hush",
        "simplecache::s3://bucket/hush",
        "s3://bucket/hush\x00",
        "s3://",
        "s3://bucket/hush/../t",
        "gs://bucket/./hush",
        "",
        "  ",
        "/a\nb",
        "/\ud800",
    ],
)
def test_unusable_places_are_refused_without_showing_secrets(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        check_base_path(text)
    assert "hush" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_place_or_a_typed_error(text: str) -> None:
    try:
        place = check_base_path(text)
    except OptionError:
        return
    assert check_base_path(place) == place

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.errors import TimelineError
from hoodie_ds.timeline.instant_time import following, format_time, next_time, padded

NOW_MS = 1_772_891_907_749  # 2026-03-07T13:58:27.749Z


def test_a_moment_is_written_in_utc_to_the_millisecond() -> None:
    assert format_time(NOW_MS, utc=True) == "20260307135827749"
    assert format_time(NOW_MS - 749, utc=True) == "20260307135827000"


@pytest.mark.parametrize(
    ("latest", "expected"),
    [
        (None, "20260307135827749"),
        ("20260307135827748", "20260307135827749"),
        ("20260307135827749", "20260307135827750"),  # the clock stands still
        ("20991231235959999", "21000101000000000"),  # another machine's clock is ahead
        ("20260307135827", "20260307135828000"),  # old tables: no milliseconds, taken as 999
    ],
)
def test_the_next_time_is_later_than_all(latest: str | None, expected: str) -> None:
    assert next_time(NOW_MS, True, latest) == expected


@given(st.integers(0, 4_000_000_000_000), st.integers(0, 4_000_000_000_000))
def test_times_increase_whatever_the_clock_does(now_ms: int, other_ms: int) -> None:
    latest = format_time(other_ms, utc=True)
    assert next_time(now_ms, True, latest) > latest
    assert len(following(latest)) == 17


def test_padding_is_for_comparison_only() -> None:
    assert padded("20260307135827") == "20260307135827999"
    assert padded("20260307135827749") == "20260307135827749"


def test_a_string_that_is_no_instant_time_is_refused() -> None:
    with pytest.raises(TimelineError, match="'29999999999999999'"):
        following("29999999999999999")


@pytest.mark.parametrize("last", ["99991231235959999", "99991231235959"])
def test_after_the_last_time_there_is_none(last: str) -> None:
    with pytest.raises(TimelineError, match=f"after '{last}'"):
        next_time(NOW_MS, True, last)

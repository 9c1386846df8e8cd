"""How many instants stay: the numbers must leave room for what a clean retains."""

from __future__ import annotations

import pytest

from hoodie_ds.config import archiving_options
from hoodie_ds.config.archiving_options import ArchivingOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError

_RETAINED = "hoodie.clean.commits.retained"
_MIN, _MAX = "hoodie.keep.min.commits", "hoodie.keep.max.commits"


def _parse(options: dict[str, str]) -> ArchivingOptions:
    return WriteOptions.parse({"path": "/t", **options}).archiving


def _numbers(**options: str) -> tuple[int, int]:
    found = _parse({key.replace("__", "."): text for key, text in options.items()})
    return found.min_commits, found.max_commits


def test_the_defaults_are_those_of_hudis_streaming_sink() -> None:
    found = _parse({})
    assert found == ArchivingOptions()
    assert (found.min_commits, found.max_commits, found.automatic) == (40, 50, True)
    assert (found.entries_per_block, found.beyond_savepoint) == (10, False)


def test_flinks_names_mean_the_same() -> None:
    given = {"archive.min_commits": "60", "archive.max_commits": "70"}
    assert _parse(given) == _parse({_MIN: "60", _MAX: "70"})


def test_the_rest_is_taken_as_given() -> None:
    found = _parse(
        {
            "hoodie.archive.automatic": "false",
            "hoodie.commits.archival.batch": "3",
            "hoodie.archive.beyond.savepoint": "true",
        }
    )
    assert (found.automatic, found.entries_per_block, found.beyond_savepoint) == (False, 3, True)


def test_more_must_be_allowed_than_is_left() -> None:
    with pytest.raises(
        OptionError, match=f"{_MAX}' = '40' is refused: it must be more than {_MIN} = 40"
    ):
        _parse({_MAX: "40"})


def test_what_is_refused_is_what_was_given() -> None:
    """`hoodie.keep.max.commits` was not: its default is to blame."""
    with pytest.raises(OptionError, match=f"'{_MIN}' = '60' .* {_MAX} = 50, which is the default"):
        _parse({_MIN: "60"})
    with pytest.raises(OptionError, match=r"'archive.min_commits' = '60' is refused"):
        _parse({"archive.min_commits": "60"})
    with pytest.raises(OptionError, match=f"'{_MAX}' = '9' .* more than {_MIN} = 9$"):
        _parse({_MIN: "9", _MAX: "9"})


def test_who_is_left_more_than_was_asked_for_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Hudi's `ArchivalUtils` warns and adjusts both numbers."""
    archiving_options._warn_of_raised.cache_clear()
    for _ in range(2):
        assert _parse({_MIN: "2", _MAX: "4"}).max_commits == 33
    (text,) = caplog.messages
    assert f"{_MIN} = 2 is raised to 31, and {_MAX} = 4 to 33" in text
    assert f"a smaller {_RETAINED}" in text
    with pytest.raises(OptionError):
        _parse({_MIN: "5", _MAX: "3"})
    assert len(caplog.messages) == 1


def test_no_fewer_are_left_than_a_clean_retains() -> None:
    with pytest.raises(
        OptionError, match=f"{_MIN}' = '5' is refused: it must be more than {_RETAINED} = 5"
    ):
        _parse({_MIN: "5", _RETAINED: "5"})
    with pytest.raises(OptionError, match=f"'archive.min_commits' = '5' .* {_RETAINED} = 5"):
        _parse({"archive.min_commits": "5", _RETAINED: "5"})
    assert _parse({_MIN: "6", _RETAINED: "5"}).min_commits == 6


def test_the_number_that_was_not_given_follows() -> None:
    """As in Hudi, whose Spark defaults 20 and 30 are often given and mean no harm."""
    assert _numbers(hoodie__keep__min__commits="20", hoodie__keep__max__commits="30") == (31, 41)
    assert _numbers(hoodie__clean__commits__retained="60") == (61, 71)


def test_a_clean_by_versions_retains_no_commits() -> None:
    by_versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
    assert _parse({**by_versions, _MIN: "2", _MAX: "3"}).min_commits == 2

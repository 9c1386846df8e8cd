"""Which policy a clean has: the one that is given, or that of the one number that is given."""

from __future__ import annotations

import pytest

from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError

_COMMITS, _HOURS, _VERSIONS = CleaningPolicy


def _parse(options: dict[str, str]) -> CleaningOptions:
    return WriteOptions.parse({"path": "/t", **options}).cleaning


@pytest.mark.parametrize("prefix", ["hoodie.clean.", "hoodie.cleaner."])
@pytest.mark.parametrize(
    ("key", "policy"),
    [("commits", _COMMITS), ("hours", _HOURS), ("fileversions", _VERSIONS)],
)
def test_one_number_alone_implies_its_policy(prefix: str, key: str, policy: CleaningPolicy) -> None:
    """The inference of Hudi's `HoodieCleanConfig`, since HUDI-5954."""
    assert _parse({f"{prefix}{key}.retained": "7"}).policy is policy


def test_none_or_several_leave_the_default() -> None:
    both = {"hoodie.clean.hours.retained": "7", "hoodie.clean.fileversions.retained": "7"}
    assert _parse({}).policy is _parse(both).policy is _COMMITS


def test_the_policy_that_is_given_counts() -> None:
    given = {"hoodie.clean.policy": _VERSIONS.value, "hoodie.clean.hours.retained": "7"}
    assert _parse(given).policy is _VERSIONS


def test_hours_are_none_or_more() -> None:
    assert _parse({"hoodie.clean.hours.retained": "0"}).hours == 0
    with pytest.raises(OptionError, match="allowed is a whole number of hours, 0 or more"):
        _parse({"hoodie.clean.hours.retained": "-5"})


@pytest.mark.parametrize("prefix", ["hoodie.clean.", "hoodie.cleaner."])
def test_the_trigger_is_the_number_of_commits(
    prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The only strategy of Hudi's `CleaningTriggerStrategy`."""
    every = {f"{prefix}trigger.strategy": "NUM_COMMITS", f"{prefix}trigger.max.commits": "3"}
    assert _parse(every).max_commits == 3
    assert not caplog.messages
    assert _parse({"hoodie.clean.max.commits": "4"}).max_commits == 4
    with pytest.raises(OptionError, match=r"'TIME'.*hoodie\.clean\.trigger\.max\.commits says"):
        _parse({f"{prefix}trigger.strategy": "TIME"})

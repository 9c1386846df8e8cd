"""The options that say which old files a clean deletes, and when it is due."""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.config.option import BOOLEAN, POSITIVE_INT, Kind, Option, choice


def _hours(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,7}", text) else None


CLEAN_AUTOMATIC: Final = Option(
    "hoodie.clean.automatic",
    BOOLEAN,
    "Whether a stream has its table cleaned after its commits; a batch write does so where this is "
    "given as true. A clean by hand needs no option.",
    True,
    aliases=("clean.async.enabled",),
)
CLEAN_POLICY: Final = Option(
    "hoodie.clean.policy",
    choice(CleaningPolicy),
    "What a clean keeps: the files that the latest commits need, those that the commits of the "
    "latest hours need, or the latest versions of each file group. Where one of the three numbers "
    "below is given alone, that one's policy is the default, as in Hudi.",
    CleaningPolicy.KEEP_LATEST_COMMITS,
    aliases=("hoodie.cleaner.policy", "clean.policy"),
)
COMMITS_RETAINED: Final = Option(
    "hoodie.clean.commits.retained",
    POSITIVE_INT,
    "How many commits a reader or writer may be behind before a clean takes its files away; for "
    "KEEP_LATEST_COMMITS.",
    30,
    aliases=("hoodie.cleaner.commits.retained", "clean.retain_commits"),
)
HOURS_RETAINED: Final = Option(
    "hoodie.clean.hours.retained",
    Kind("a whole number of hours, 0 or more", _hours),
    "The same in hours; for KEEP_LATEST_BY_HOURS.",
    24,
    aliases=("hoodie.cleaner.hours.retained", "clean.retain_hours"),
)
VERSIONS_RETAINED: Final = Option(
    "hoodie.clean.fileversions.retained",
    POSITIVE_INT,
    "How many versions of each file group stay, the newest one counted; for "
    "KEEP_LATEST_FILE_VERSIONS.",
    3,
    aliases=("hoodie.cleaner.fileversions.retained", "clean.retain_file_versions"),
)
CLEAN_MAX_COMMITS: Final = Option(
    "hoodie.clean.trigger.max.commits",
    POSITIVE_INT,
    "After how many commits since the last clean a stream's next one is due.",
    1,
    aliases=("hoodie.cleaner.trigger.max.commits", "hoodie.clean.max.commits"),
)

CLEANING_OPTIONS: Final[tuple[Option[object], ...]] = (
    CLEAN_AUTOMATIC,
    CLEAN_POLICY,
    COMMITS_RETAINED,
    HOURS_RETAINED,
    VERSIONS_RETAINED,
    CLEAN_MAX_COMMITS,
)
"""Every option of this module, in the order of the option table."""

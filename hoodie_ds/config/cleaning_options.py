"""Which old files a clean deletes, and when it is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import BOOLEAN, POSITIVE_INT, Option, choice, whole

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, kw_only=True)
class CleaningOptions(OptionGroup):
    """The rule of a clean.

    The defaults are Hudi's, but for the number of commits, which is that of Hudi's streams.
    """

    automatic: Option[bool] = Option(
        "hoodie.clean.automatic",
        BOOLEAN,
        "Whether a stream has its table cleaned after its commits; a batch write does so where "
        "this is given as true. A clean by hand needs no option.",
        True,
        aliases=("clean.async.enabled",),
    )
    policy: Option[CleaningPolicy] = Option(
        "hoodie.clean.policy",
        choice(CleaningPolicy),
        "What a clean keeps: the files that the latest commits need, those that the commits of "
        "the latest hours need, or the latest versions of each file group. Where one of the three "
        "numbers below is given alone, that one's policy is the default, as in Hudi.",
        CleaningPolicy.KEEP_LATEST_COMMITS,
        aliases=("hoodie.cleaner.policy", "clean.policy"),
    )
    commits: Option[int] = Option(
        "hoodie.clean.commits.retained",
        POSITIVE_INT,
        "Commits of history that a clean retains: so far behind a reader still finds its files; "
        "for KEEP_LATEST_COMMITS.",
        30,
        aliases=("hoodie.cleaner.commits.retained", "clean.retain_commits"),
    )
    hours: Option[int] = Option(
        "hoodie.clean.hours.retained",
        whole("a whole number of hours, 0 or more", most=10**7 - 1),
        "Hours of history that a clean retains; for KEEP_LATEST_BY_HOURS.",
        24,
        aliases=("hoodie.cleaner.hours.retained", "clean.retain_hours"),
    )
    versions: Option[int] = Option(
        "hoodie.clean.fileversions.retained",
        POSITIVE_INT,
        "Versions of each file group that a clean retains, the newest included; for "
        "KEEP_LATEST_FILE_VERSIONS.",
        3,
        aliases=("hoodie.cleaner.fileversions.retained", "clean.retain_file_versions"),
    )
    max_commits: Option[int] = Option(
        "hoodie.clean.trigger.max.commits",
        POSITIVE_INT,
        "After how many commits since the last clean a stream's next one is due.",
        1,
        aliases=("hoodie.cleaner.trigger.max.commits", "hoodie.clean.max.commits"),
    )

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        options = super().of(given)
        counted = {
            CleaningPolicy.KEEP_LATEST_COMMITS: cls.commits,
            CleaningPolicy.KEEP_LATEST_BY_HOURS: cls.hours,
            CleaningPolicy.KEEP_LATEST_FILE_VERSIONS: cls.versions,
        }
        # One number that is given alone implies its policy, as in Hudi since 0.13.1 (HUDI-5954).
        implied = [policy for policy, option in counted.items() if given.written(option)]
        if given.written(cls.policy) or len(implied) != 1:
            return options
        return options.with_values(policy=implied[0])

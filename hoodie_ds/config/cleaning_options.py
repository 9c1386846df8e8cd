"""Which old files a clean deletes, as the user said."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.options import cleaning as keys


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningOptions:
    """The rule of a clean.

    The defaults are Hudi's, but for the number of commits, which is that of Hudi's streams.

    Parameters
    ----------
    automatic : bool
        Whether a stream has its table cleaned.
    policy : CleaningPolicy
        What is counted.
    commits : int
        Commits whose files stay.
    hours : int
        Age in hours at which the files of a commit need not stay.
    versions : int
        Versions of each file group that stay.
    max_commits : int
        Commits since the last clean at which a stream's next one is due.
    """

    automatic: bool = True
    policy: CleaningPolicy = CleaningPolicy.KEEP_LATEST_COMMITS
    commits: int = 30
    hours: int = 24
    versions: int = 3
    max_commits: int = 1

    @classmethod
    def of(cls, given: GivenOptions) -> CleaningOptions:
        """Take the options out of those given, which note what is wrong."""
        return cls(
            automatic=given.get_or_default(keys.CLEAN_AUTOMATIC),
            policy=given.get_or_default(keys.CLEAN_POLICY),
            commits=given.get_or_default(keys.COMMITS_RETAINED),
            hours=given.get_or_default(keys.HOURS_RETAINED),
            versions=given.get_or_default(keys.VERSIONS_RETAINED),
            max_commits=given.get_or_default(keys.CLEAN_MAX_COMMITS),
        )

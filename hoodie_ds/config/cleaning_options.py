"""Which old files a clean deletes, as the user said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.option import Option
from hoodie_ds.config.options import cleaning as keys

_COUNTED_BY: Final[dict[CleaningPolicy, Option[int]]] = {
    CleaningPolicy.KEEP_LATEST_COMMITS: keys.COMMITS_RETAINED,
    CleaningPolicy.KEEP_LATEST_BY_HOURS: keys.HOURS_RETAINED,
    CleaningPolicy.KEEP_LATEST_FILE_VERSIONS: keys.VERSIONS_RETAINED,
}


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
            policy=given.get(keys.CLEAN_POLICY) or _implied(given),
            commits=given.get_or_default(keys.COMMITS_RETAINED),
            hours=given.get_or_default(keys.HOURS_RETAINED),
            versions=given.get_or_default(keys.VERSIONS_RETAINED),
            max_commits=given.get_or_default(keys.CLEAN_MAX_COMMITS),
        )


def _implied(given: GivenOptions) -> CleaningPolicy:
    """The policy of the one number that is given; the default if none is, or several are.

    As Hudi infers it since 0.13.1 (HUDI-5954).
    """
    found = [policy for policy, option in _COUNTED_BY.items() if given.written(option)]
    return found[0] if len(found) == 1 else CleaningPolicy.KEEP_LATEST_COMMITS

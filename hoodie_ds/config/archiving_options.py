"""Which instants leave the active timeline, as the user said."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache

from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.options import archiving as keys
from hoodie_ds.config.options import cleaning as cleaning_keys
from hoodie_ds.errors import OptionError

_log = logging.getLogger("hoodie_ds")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivingOptions:
    """How long the active timeline is. The defaults are those of Hudi's streaming sink in Flink.

    Parameters
    ----------
    automatic : bool
        Whether a stream has its timeline archived.
    min_commits : int
        Commits that stay, and cleans, and rollbacks.
    max_commits : int
        More than so many of them are too many.
    entries_per_block : int
        Of the archive of layout 1.
    files_per_level : int
        How many files of the archive of layout 2 become one.
    beyond_savepoint : bool
        Whether commits after the oldest savepoint are archived too.
    """

    automatic: bool = True
    min_commits: int = 40
    max_commits: int = 50
    entries_per_block: int = 10
    files_per_level: int = 10
    beyond_savepoint: bool = False

    @classmethod
    def of(cls, given: GivenOptions, cleaning: CleaningOptions) -> ArchivingOptions:
        """Take the options out of those given, which note what is wrong.

        As in Hudi more commits stay than a clean retains, or a clean would miss those between.
        Where the user gave one of the two numbers alone, the other one follows; Hudi warns too.
        """
        fewest = given.get_or_default(keys.KEEP_MIN_COMMITS)
        most = given.get_or_default(keys.KEEP_MAX_COMMITS)
        if most <= fewest:
            given.refuse(_crossed(given, fewest, most))
        counts_commits = cleaning.policy is CleaningPolicy.KEEP_LATEST_COMMITS
        if counts_commits and fewest <= cleaning.commits:
            retained = cleaning_keys.COMMITS_RETAINED
            if given.written(keys.KEEP_MIN_COMMITS) and given.written(retained):
                remedy = f"it must be more than {retained.key} = {cleaning.commits}"
                given.refuse(OptionError(keys.KEEP_MIN_COMMITS.key, fewest, remedy))
            raised = cleaning.commits + 1
            if given.written(keys.KEEP_MIN_COMMITS) and most > fewest:
                _warn_of_raised(fewest, raised, most, raised + most - fewest)
            fewest, most = raised, raised + most - fewest
        return cls(
            automatic=given.get_or_default(keys.ARCHIVE_AUTOMATIC),
            min_commits=fewest,
            max_commits=most,
            entries_per_block=given.get_or_default(keys.ARCHIVAL_BATCH),
            files_per_level=given.get_or_default(keys.FILES_PER_LEVEL),
            beyond_savepoint=given.get_or_default(keys.ARCHIVE_BEYOND_SAVEPOINT),
        )


def _crossed(given: GivenOptions, fewest: int, most: int) -> OptionError:
    """Say of a number that was given that it does not go with the other one."""
    by_default = ", which is the default; give both"
    fewest_given, most_given = map(given.written, (keys.KEEP_MIN_COMMITS, keys.KEEP_MAX_COMMITS))
    if not most_given:
        remedy = f"it must be less than {keys.KEEP_MAX_COMMITS.key} = {most}{by_default}"
        return OptionError(fewest_given[0][0], fewest, remedy)
    remedy = f"it must be more than {keys.KEEP_MIN_COMMITS.key} = {fewest}"
    return OptionError(most_given[0][0], most, remedy + ("" if fewest_given else by_default))


@lru_cache(maxsize=256)
def _warn_of_raised(fewest: int, raised: int, most: int, most_raised: int) -> None:
    """Warn once in a process that more instants stay than was said."""
    _log.warning(
        "%s = %d is raised to %d, and %s = %d to %d: a clean retains %d commits by default, which "
        "stay on the timeline; give a smaller %s to archive them",
        keys.KEEP_MIN_COMMITS.key,
        fewest,
        raised,
        keys.KEEP_MAX_COMMITS.key,
        most,
        most_raised,
        raised - 1,
        cleaning_keys.COMMITS_RETAINED.key,
    )

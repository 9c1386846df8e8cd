"""Which instants leave the active timeline, and when."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import BOOLEAN, POSITIVE_INT, Option
from hoodie_ds.log import Log

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, kw_only=True)
class ArchivingOptions(OptionGroup):
    """How long the active timeline is. The defaults are those of Hudi's streaming sink in Flink."""

    automatic: Option[bool] = Option(
        "hoodie.archive.automatic",
        BOOLEAN,
        "Whether a stream has its timeline archived after its commits; a batch write does so where "
        "this is given as true. Archiving by hand needs no option.",
        True,
    )
    min_commits: Option[int] = Option(
        "hoodie.keep.min.commits",
        POSITIVE_INT,
        "How many commits archiving leaves on the active timeline, and how many cleans and "
        "rollbacks. In table versions 8 and 9 cleans are archived with the commits after them.",
        40,
        aliases=("archive.min_commits",),
    )
    max_commits: Option[int] = Option(
        "hoodie.keep.max.commits",
        POSITIVE_INT,
        "How many commits, cleans or rollbacks the active timeline may have before the oldest of "
        "them are archived.",
        50,
        aliases=("archive.max_commits",),
    )
    entries_per_block: Option[int] = Option(
        "hoodie.commits.archival.batch",
        POSITIVE_INT,
        "Entries in one block of the archive of table version 6; each instant has up to three.",
        10,
    )
    files_per_level: Option[int] = Option(
        "hoodie.timeline.compaction.batch.size",
        POSITIVE_INT,
        "How many small files of the archive become a larger one, in table versions 8 and 9.",
        10,
    )
    beyond_savepoint: Option[bool] = Option(
        "hoodie.archive.beyond.savepoint",
        BOOLEAN,
        "Whether commits after the oldest savepoint are archived too; savepointed commits stay.",
        False,
    )

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong.

        As in Hudi more commits stay than a clean retains, or a clean would miss those between.
        Where the user gave one of the two numbers alone, the other one follows; Hudi warns too.
        """
        options, cleaning = super().of(given), CleaningOptions.of(given)
        fewest, most, retained = options.min_commits, options.max_commits, cleaning.commits
        if most <= fewest:
            _refuse_crossed(given, fewest, most)
        if cleaning.policy is not CleaningPolicy.KEEP_LATEST_COMMITS or fewest > retained:
            return options
        raised = retained + 1, retained + 1 + most - fewest
        if given.written(cls.min_commits) and given.written(CleaningOptions.commits):
            remedy = f"it must be more than {CleaningOptions.commits.key} = {retained}"
            given.refuse_value(cls.min_commits, remedy)
        if given.written(cls.min_commits) and most > fewest:
            _warn_of_raised(fewest, raised[0], most, raised[1])
        return options.with_values(min_commits=raised[0], max_commits=raised[1])


def _refuse_crossed(given: GivenOptions, fewest: int, most: int) -> None:
    """Note of a number that was given that it does not go with the other one."""
    by_default = ", which is the default; give both"
    least_option, most_option = ArchivingOptions.min_commits, ArchivingOptions.max_commits
    if not given.written(most_option):
        remedy = f"it must be less than {most_option.key} = {most}{by_default}"
        given.refuse_value(least_option, remedy)
        return
    remedy = f"it must be more than {least_option.key} = {fewest}"
    given.refuse_value(most_option, remedy + ("" if given.written(least_option) else by_default))


@lru_cache(maxsize=256)
def _warn_of_raised(fewest: int, raised: int, most: int, most_raised: int) -> None:
    """Warn once in a process that more instants stay than was asked for."""
    Log().warning(
        "%s = %d is raised to %d, and %s = %d to %d: a clean retains %d commits by default, which "
        "stay on the timeline; give a smaller %s to archive them",
        ArchivingOptions.min_commits.key,
        fewest,
        raised,
        ArchivingOptions.max_commits.key,
        most,
        most_raised,
        raised - 1,
        CleaningOptions.commits.key,
    )

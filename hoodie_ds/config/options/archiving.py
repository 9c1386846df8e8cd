"""The options that say which instants leave the active timeline, and when."""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.option import BOOLEAN, POSITIVE_INT, Option

ARCHIVE_AUTOMATIC: Final = Option(
    "hoodie.archive.automatic",
    BOOLEAN,
    "Whether a stream has its timeline archived after its commits; a batch write does so where "
    "this is given as true. Archiving by hand needs no option.",
    True,
)
KEEP_MIN_COMMITS: Final = Option(
    "hoodie.keep.min.commits",
    POSITIVE_INT,
    "How many commits archiving leaves on the active timeline; of cleans and of rollbacks as many. "
    "In table versions 8 and 9 cleans go with the commits after them.",
    40,
    aliases=("archive.min_commits",),
)
KEEP_MAX_COMMITS: Final = Option(
    "hoodie.keep.max.commits",
    POSITIVE_INT,
    "How many commits, cleans or rollbacks the active timeline may have before the oldest of them "
    "are archived.",
    50,
    aliases=("archive.max_commits",),
)
ARCHIVAL_BATCH: Final = Option(
    "hoodie.commits.archival.batch",
    POSITIVE_INT,
    "Entries in one block of the archive of table version 6; each instant has up to three.",
    10,
)
FILES_PER_LEVEL: Final = Option(
    "hoodie.timeline.compaction.batch.size",
    POSITIVE_INT,
    "How many small files of the archive become a larger one, in table versions 8 and 9.",
    10,
)
ARCHIVE_BEYOND_SAVEPOINT: Final = Option(
    "hoodie.archive.beyond.savepoint",
    BOOLEAN,
    "Whether commits after the oldest savepoint are archived too; those of savepoints stay.",
    False,
)

ARCHIVING_OPTIONS: Final[tuple[Option[object], ...]] = (
    ARCHIVE_AUTOMATIC,
    KEEP_MIN_COMMITS,
    KEEP_MAX_COMMITS,
    ARCHIVAL_BATCH,
    FILES_PER_LEVEL,
    ARCHIVE_BEYOND_SAVEPOINT,
)
"""Every option of this module, in the order of the option table."""

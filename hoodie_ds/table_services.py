"""What `HoodieTable` does for its own upkeep: compaction, savepoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from hoodie_ds.arguments import Moment, instant_time, text
from hoodie_ds.errors import OptionError
from hoodie_ds.services.archiving import archive
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.context import Progress, ServiceContext
from hoodie_ds.services.delta_log import followed_by_sync
from hoodie_ds.services.losses import Undoing
from hoodie_ds.services.orphans import Orphans, delete_orphans
from hoodie_ds.services.restore import restore_by_hand
from hoodie_ds.services.results import Clustering, Compaction, ServiceResult
from hoodie_ds.services.rollback import roll_back_by_hand
from hoodie_ds.services.savepoint import Savepoint, delete_savepoint, make_savepoint
from hoodie_ds.services.upgrade.properties import VERSIONS
from hoodie_ds.services.upgrade.version_change import VersionChange, change_version
from hoodie_ds.timeline.instant import Instant


class TableServices(ABC):
    """Methods of a table that concern its instants, not its rows."""

    def savepoint(
        self,
        instant: Moment | None = None,
        *,
        user: str = "",
        comments: str = "",
        dry: bool = False,
    ) -> Savepoint:
        """Keep the files of a commit, so that `restore` can go back to it.

        No clean takes them until `delete_savepoint`. A commit that has a savepoint keeps it.

        Parameters
        ----------
        instant : str, Instant or WriteResult, optional
            Instant time of a completed commit of the active timeline; the newest by default.
        user, comments : str
            Who makes the savepoint, and why; for those who look at it later.
        dry : bool
            Whether to change nothing, and only say what would be kept.

        Returns
        -------
        Savepoint
            The commit's time, and the files that are kept.

        Raises
        ------
        OptionError
            An argument is not what it has to be.
        TimelineError
            There is no such commit; a clean took one of its files, or will; or a restore is
            pending.
        """
        time = None if instant is None else instant_time("instant", instant)
        who, why = text("user", user), text("comments", comments)
        return make_savepoint(self._services(dry=dry), time, who, why, dry=dry)

    def compact(
        self,
        options: Mapping[str, str] | None = None,
        *,
        dry: bool = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult[Compaction]:
        """Merge log files into base files (merge-on-read); the rows stay as they are.

        Compactions that were planned before, by whichever engine, are carried out first. Writers
        go on meanwhile.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as ``hoodie.compaction.strategy``.
        dry : bool
            Whether only to say what would be done.
        only_if_due : bool
            Whether to plan nothing new before ``hoodie.compact.inline.trigger.strategy`` and what
            belongs to it ask for it.
        progress : callable, optional
            Is told how many file groups of a plan are done, and of how many.

        Returns
        -------
        ServiceResult of Compaction
            What was done, or would be; empty and false if there was nothing to do.

        Raises
        ------
        UnsupportedTableError
            The table is not a merge-on-read one.
        HoodieError
            The compaction failed; the rows are as before, and what is planned stays planned.
        """
        context = replace(self._services(options, dry), progress=progress)
        compact = partial(Compactor(context).compact, dry, only_if_due)
        return followed_by_sync(context, compact, dry=dry)

    def cluster(
        self,
        options: Mapping[str, str] | None = None,
        *,
        dry: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult[Clustering]:
        """Rewrite small file groups into larger ones, sorted by option; the rows stay as they are.

        Clusterings that were planned before, by whichever engine, are carried out first. Writers
        go on meanwhile, but for those to the same file groups.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as ``hoodie.clustering.plan.strategy.sort.columns``.
        dry : bool
            Whether only to say what would be done.
        progress : callable, optional
            Is told how many groups of a plan are done, and of how many.

        Returns
        -------
        ServiceResult of Clustering
            What was done, or would be; empty and false if there was nothing to do.

        Raises
        ------
        OptionError
            An option contradicts the table, or names a partition that it does not have.
        UnsupportedTableError
            The table has a bucket index.
        HoodieError
            The clustering failed; the rows are as before, and what is planned stays planned.
        """
        context = replace(self._services(options, dry), progress=progress)
        return followed_by_sync(context, partial(Clusterer(context).cluster, dry), dry=dry)

    def delete_savepoint(self, instant: Moment, *, dry: bool = False) -> Savepoint:
        """Let cleans take the files of a savepoint again; the commit itself stays.

        But where commits after it are archived (``hoodie.archive.beyond.savepoint``) it is archived
        too, and what it has replaced is cleaned before that.

        Parameters
        ----------
        instant : str, Instant, WriteResult or Savepoint
            Time of the savepoint.
        dry : bool
            Whether to change nothing, and only say what would be let go.

        Returns
        -------
        Savepoint
            The one that is no more.

        Raises
        ------
        OptionError
            It has no time.
        TimelineError
            There is no such savepoint, or a restore is pending; or the commit would have to be
            archived, and what it has replaced cannot be cleaned yet.
        """
        return delete_savepoint(self._services(dry=dry), instant_time("instant", instant), dry=dry)

    def archive(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> ServiceResult[Instant]:
        """Move the oldest instants off the active timeline into Hudi's archive, if it is too long.

        The options ``hoodie.keep.max.commits`` and ``hoodie.keep.min.commits`` say how many may be
        there, and how many are left. What is archived stays part of the table.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as those.
        dry : bool
            Whether to change nothing, and only say what would be archived.

        Returns
        -------
        ServiceResult of Instant
            The instants that were archived, or would be; empty and false if there were none.

        Raises
        ------
        HoodieError
            The archive was refused or failed; what was begun the next one finishes.
        """
        return archive(self._services(options, dry), dry=dry)

    def cleanup(self, *, dry: bool = False) -> Orphans:
        """Delete data files that no commit names, nor ever will: leftovers of late or dead writers.

        Files of pending instants stay, as their writer may be at work; `rollback` takes them.

        Parameters
        ----------
        dry : bool
            Whether to change nothing, and only say what would be deleted.

        Returns
        -------
        Orphans
            The files; false if there were none.

        Raises
        ------
        TimelineError
            A restore is pending.
        """
        return delete_orphans(self._services(dry=dry), dry=dry)

    def rollback(self, instant: Moment | None = None, *, dry: bool = False) -> Undoing:
        """Take a write off the table: what it inserted, updated and deleted is lost.

        The rows are then as before it, and its micro-batches can be written again: a stream that
        goes on without them is refused (`MissedBatchesError`), as Spark takes them for done. A
        plan of a compaction or clustering that is pending is cancelled.

        Parameters
        ----------
        instant : str, Instant or WriteResult, optional
            Time of the newest completed write, or of a pending one; the newest completed write
            by default, if no other is pending.
        dry : bool
            Whether to change nothing, and only say what would be lost.

        Returns
        -------
        Undoing
            What is lost.

        Raises
        ------
        OptionError
            What is given has no time.
        TimelineError
            There is no such write; none is named, and one is pending; others come after it,
            completed or pending; it has a savepoint; its writer is at work; a clean took files that
            the table had before it, or will; a compaction has log files named after it; or a
            restore is pending.
        """
        time = None if instant is None else instant_time("instant", instant)
        context = self._services(dry=dry)
        work = partial(roll_back_by_hand, context, time, dry=dry)
        return followed_by_sync(context, work, dry=dry)

    def restore(self, to: Moment, *, dry: bool = False) -> Undoing:
        """Go back to an earlier state: all that was written after it is lost.

        Writes and plans that are pending go too. The rows, the schema and the micro-batches that
        are known are as of then: a stream has to bring its batches since then again, from an
        earlier copy of its checkpoint or a new one, and is refused otherwise
        (`MissedBatchesError`). Nobody writes while a restore is pending; one that was killed is
        gone on with by whoever calls this or writes next. One that another engine left pending is
        completed first.

        Parameters
        ----------
        to : str, Instant, WriteResult or Savepoint
            Instant time of a savepoint or of another completed write of the active timeline, the
            last one that stays.
        dry : bool
            Whether to change nothing, and only say what would be lost; of a pending restore, what
            it takes.

        Returns
        -------
        Undoing
            What is lost.

        Raises
        ------
        OptionError
            What is given has no time.
        TimelineError
            There is no such write; one after it has a savepoint, or was archived; or a clean took
            files that the table had then, or will.
        """
        context = self._services(dry=dry)
        work = partial(restore_by_hand, context, instant_time("to", to), dry=dry)
        return followed_by_sync(context, work, dry=dry)

    def upgrade(self, to: int, *, dry: bool = False) -> VersionChange:
        """Make the table one of a later version, by Hudi's rules; the rows stay as they are.

        Before, writes that are dead are undone, clusterings and cleans that wait are carried out,
        and a merge-on-read table is compacted. A metadata table is dropped, if the table's options
        have ``hoodie.metadata.enable=false``. Stop the writers: one that is at work is refused when
        it commits. A call that was killed is gone on with by the same call again, and nobody writes
        before that; readers go on. Savepoints stay, and can be read; to restore the table to what
        it was before is refused, as to roll that back. A merge-on-read table of version 6 that has
        an ordering field comes to be ordered by it, whatever its standard payload class; where that
        changes the order, a warning says so, and savepoints have to be deleted before.

        Parameters
        ----------
        to : int
            8 or 9. A table that has this version already stays as it is.
        dry : bool
            Whether to change nothing, and only say what would be.

        Returns
        -------
        VersionChange
            The versions before and after, and the properties that change.

        Raises
        ------
        OptionError
            There is no such version, or the table has a later one.
        TimelineError
            Something is pending that has to be finished first.
        UnsupportedTableError
            The table has a metadata table, and the options do not say that it may go; or its rows
            would be merged otherwise in the other version.
        """
        return self._change_version("upgrade", to, dry)

    def downgrade(self, to: int, *, dry: bool = False) -> VersionChange:
        """Make the table one of an earlier version, by Hudi's rules; the rows stay as they are.

        What is said of `upgrade` holds here too. Of a merge-on-read table with savepoints version 6
        is refused: it would take their log files for slices of their own, and read other rows.
        In version 6 Hudi on the JVM tells by the times of the timeline's files which log files a
        compaction has merged. They are set on a local disk; an object store has none that can be,
        and such log files have to be cleaned there before.

        Parameters
        ----------
        to : int
            6 or 8. A table that has this version already stays as it is.
        dry : bool
            Whether to change nothing, and only say what would be.

        Returns
        -------
        VersionChange
            The versions before and after, and the properties that change.

        Raises
        ------
        OptionError
            There is no such version, or the table has an earlier one.
        TimelineError, UnsupportedTableError
            As `upgrade`.
        """
        return self._change_version("downgrade", to, dry)

    def _change_version(self, method: str, to: int, dry: bool) -> VersionChange:
        known = VERSIONS[1:] if method == "upgrade" else VERSIONS[:-1]
        if type(to) is not int or to not in known:  # 8.0 is equal, and written otherwise
            raise OptionError("to", to, f"give {' or '.join(map(str, known))}, as a number")
        context = self._services(dry=dry)
        # The version that the table's options name is the one that it has, or is to have, and so
        # is the order of rows.
        options = replace(context.options, table_version=None, merge_mode=None, payload_class=None)
        context = replace(context, options=options)
        found = context.open_table(to_be_dropped=True).properties.version
        if found > to if method == "upgrade" else found < to:
            raise OptionError("to", to, f"the table has version {found}; call the other method")
        return followed_by_sync(context, partial(change_version, context, to, dry=dry), dry=dry)

    @abstractmethod
    def _services(
        self, options: Mapping[str, str] | None = None, dry: bool = False
    ) -> ServiceContext:
        """Return where and how the services of the table run, with further options of a call."""

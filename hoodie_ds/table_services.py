"""What `HoodieTable` does with its own past: savepoints and ways back to them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.savepoint import Savepoint, delete_savepoint, make_savepoint


class TableServices(ABC):
    """Methods of a table that concern its instants, not its rows."""

    def savepoint(
        self,
        instant: str | None = None,
        *,
        user: str = "",
        comments: str = "",
        dry: bool = False,
    ) -> Savepoint:
        """Keep the files of a commit, so that `restore` can go back to it.

        No clean takes them until `delete_savepoint`. A commit that has a savepoint keeps it.

        Parameters
        ----------
        instant : str, optional
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
        TimelineError
            There is no such commit; a clean took one of its files, or will; or a restore is
            pending.
        """
        return make_savepoint(self._services(), instant, user, comments, dry=dry)

    def delete_savepoint(self, instant: str) -> None:
        """Let cleans take the files of a savepoint again; the commit itself stays.

        Parameters
        ----------
        instant : str
            Time of the savepoint.

        Raises
        ------
        TimelineError
            There is no such savepoint, or a restore is pending.
        """
        delete_savepoint(self._services(), instant)

    @abstractmethod
    def _services(self) -> ServiceContext:
        """Return where and how the services of the table run."""

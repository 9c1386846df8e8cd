"""Followers: what is kept up to date beside a table, and hears of its instants."""

from __future__ import annotations

from typing import Protocol

from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import Instant


class Follower(Protocol):
    """What is kept up to date beside a table."""

    def before(self, table: Table, completed: Instant, body: bytes) -> None:
        """Take an instant in, of whatever action, that is about to become visible.

        Whoever ends the instant calls this, a recovery of another process too, and again after a
        crash: what is done already is left alone. If it raises, the instant stays open for the next
        process. What it writes must not count without the instant: that may never become visible,
        where this process was stopped until others had ended it and taken it back.

        Parameters
        ----------
        table : Table
            The table.
        completed : Instant
            The instant as it is completed.
        body : bytes
            What its completed file is to say.
        """
        ...


def own_followers(table: Table) -> tuple[Follower, ...]:
    """Return the followers that a table has by its properties, whoever opens it and why."""
    return ()

"""What a timeline layout knows of files; all else about instants is the same in every layout."""

from __future__ import annotations

from typing import Protocol

from hoodie_ds.timeline.instant import Action, Instant


class Layout(Protocol):
    """Folder and names of the files of instants."""

    @property
    def version(self) -> int:
        """Its number, as ``hoodie.timeline.layout.version`` has it."""
        ...

    @property
    def clustering(self) -> Action:
        """The action of a clustering until it completes, as a replace commit."""
        ...

    @property
    def folder(self) -> str:
        """The folder of the active timeline, relative to a table's base path."""
        ...

    def file_name(self, instant: Instant) -> str:
        """Return the name of the file that records a step of an instant."""
        ...

    def parse(self, name: str) -> Instant | None:
        """Read a file name of the folder; None for a file that is not an instant."""
        ...

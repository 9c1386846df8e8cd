"""Where keys were read from: what names a slice in the state of the state index."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.table.file_slice import FileSlice


@dataclass(frozen=True, slots=True)
class Place:
    """What keys were read from; another one as soon as anybody changed the slice.

    Parameters
    ----------
    root : str
        Root of the table's storage.
    slice : FileSlice
        The slice.
    as_of : str
        The timeline by which log files were read; empty without log files.
    """

    root: str
    slice: FileSlice
    as_of: str

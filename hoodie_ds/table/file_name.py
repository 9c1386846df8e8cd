"""Names of data files: the one place that builds and reads them (Hudi tech spec, "file naming").

A base file is ``<fileId>_<writeToken>_<instant>.parquet``, a log file
``.<fileId>_<baseInstant>.log.<version>_<writeToken>``. Names are relative to their partition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BASE = re.compile(r"([A-Za-z0-9-]+)_(\d+-\d+-\d+)_(\d+)\.parquet", re.ASCII)
_LOG = re.compile(r"\.([A-Za-z0-9-]+)_(\d+)\.log\.(\d{1,10})(?:_(\d+-\d+-\d+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """Name of a base file.

    Parameters
    ----------
    file_id : str
        File group's id; never holds an underscore.
    write_token : str
        ``<task partition>-<stage>-<attempt>``, different in every attempt to write.
    instant_time : str
        Time of the instant that wrote it.
    """

    file_id: str
    write_token: str
    instant_time: str

    @classmethod
    def parse(cls, name: str) -> BaseFileName | None:
        """Read a file name; None if it is not a base file's."""
        match = _BASE.fullmatch(name)
        return cls(*match.groups()) if match else None

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant_time}.parquet"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """Name of a log file.

    Parameters
    ----------
    file_id : str
        File group's id.
    base_instant : str
        Version 6: the base instant of the slice that the log belongs to. Versions 8 and 9: the
        instant that wrote it.
    version : int
        Counts up from 1 within the slice.
    write_token : str
        As in a base file; empty in files of very old writers.
    """

    file_id: str
    base_instant: str
    version: int
    write_token: str

    @classmethod
    def parse(cls, name: str) -> LogFileName | None:
        """Read a file name; None if it is not a log file's (or holds change data)."""
        match = _LOG.fullmatch(name)
        if match is None:
            return None
        file_id, base_instant, version, token = match.groups()
        return cls(file_id, base_instant, int(version), token or "")

    def __str__(self) -> str:
        return f".{self.file_id}_{self.base_instant}.log.{self.version}_{self.write_token}"

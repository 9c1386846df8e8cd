"""Names of data files: the one place that builds and reads them (Hudi tech spec, "file naming").

A base file is ``<fileId>_<writeToken>_<instant>.parquet``, a log file
``.<fileId>_<baseInstant>.log.<version>_<writeToken>``, and a file of change data the same with the
suffix ``.cdc``. Names are relative to their partition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# In the record index of a metadata table an id may have the path of a partition, which is escaped.
_ID = r"([A-Za-z0-9][^_/\\\x00-\x1f\x7f]*)"
_BASE = re.compile(_ID + r"_(\d+-\d+-\d+)_(\d+)\.(parquet|hfile)", re.ASCII)
_OTHER_FORMAT = re.compile(r"[A-Za-z0-9-]+_\d+-\d+-\d+_\d+\.(orc|hfile|lance)", re.ASCII)
_LOG = re.compile(r"\." + _ID + r"_(\d+)\.log\.(\d{1,10})(?:_(\d+-\d+-\d+))?", re.ASCII)
_CDC = re.compile(r"\.([A-Za-z0-9-]+)_(\d+)\.log\.(\d{1,10})_(\d+-\d+-\d+)\.cdc", re.ASCII)

_BUCKET = re.compile(r"([0-9]{8})-")


def bucket_of(file_id: str) -> int | None:
    """Bucket of a file id; None if it is not one of a bucket index."""
    match = _BUCKET.match(file_id)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """Name of a base file.

    The id of a file group never has an underscore. The write token, ``<task
    partition>-<stage>-<attempt>``, is different in every attempt to write.
    """

    file_id: str
    write_token: str
    instant_time: str
    extension: str = "parquet"  # only in metadata tables another one, hfile

    @classmethod
    def parse(cls, name: str, extension: str = "parquet") -> BaseFileName | None:
        """Read a file name; None if it is not that of a base file with the extension."""
        match = _BASE.fullmatch(name)
        return cls(*match.groups()) if match and match[4] == extension else None

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant_time}.{self.extension}"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """Name of a log file.

    `base_instant` is the base instant of the slice in version 6, and the instant that wrote the
    file in versions 8 and 9. `version` counts up from 1 within the slice. The write token is that
    of a base file, empty in files of very old writers.
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


@dataclass(frozen=True, slots=True)
class CdcFileName:
    """Name of a file of change data: what a commit changed when it rewrote a base file.

    Instant time and write token are those of the base file, in every table version. Hudi increments
    `version` from 1 where a file grows too large.
    """

    file_id: str
    instant_time: str
    write_token: str
    version: int = 1

    @classmethod
    def parse(cls, name: str) -> CdcFileName | None:
        """Read a file name; None if it is not that of a file of change data."""
        match = _CDC.fullmatch(name)
        if match is None:
            return None
        file_id, instant_time, version, token = match.groups()
        return cls(file_id, instant_time, token, int(version))

    def __str__(self) -> str:
        return f".{self.file_id}_{self.instant_time}.log.{self.version}_{self.write_token}.cdc"


def other_format(name: str) -> str | None:
    """Format of a base file that is not Parquet, in upper case; None for any other file."""
    match = _OTHER_FORMAT.fullmatch(name)
    return match[1].upper() if match else None


def written_by(name: str) -> str | None:
    """Instant that wrote a file whose name only its writer can use; None for any other file.

    Such are the names of base files and of files of change data. That of a log file has its instant
    in some table versions only.
    """
    found = BaseFileName.parse(name) or CdcFileName.parse(name)
    return None if found is None else found.instant_time

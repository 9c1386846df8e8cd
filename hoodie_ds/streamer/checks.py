"""The checks of `hoodie_ds.streamer.job` before it starts Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from glob import glob, has_magic
from pathlib import Path
from typing import Final

from hoodie_ds.config.base_path import scheme_of
from hoodie_ds.datasource.ddl import ddl_fault
from hoodie_ds.datasource.session import AVAILABLE_NOW, StreamJob
from hoodie_ds.errors import OptionError

_NOW: Final = ("availablenow", "once")
_PROCESSING_TIME: Final = re.compile(r"processing[-_ ]?time\b[\s=:(]*", re.IGNORECASE)
_UNIT: Final = r"(?:microsecond|millisecond|second|minute|hour|day|week)s?"
_INTERVAL: Final = re.compile(rf"(?:interval\s+)?(?:\d+(?:\.\d+)?\s+{_UNIT}\s*)+", re.IGNORECASE)
_FILES: Final = ("parquet", "json", "csv", "orc", "avro", "xml")
_FILES_OF_KNOWN_COLUMNS: Final = ("text", "binaryfile")
_INFERENCE: Final = "spark.sql.streaming.schemaInference"
_DEFAULT_FS: Final = "spark.hadoop.fs.defaultFS"


def parse_trigger(text: str) -> str:
    """Return `AVAILABLE_NOW`, or the interval of a trigger, in the spellings of people and Spark.

    Such as ``available-now``, ``availableNow``, ``once``, ``10 seconds``, ``processingTime=10
    seconds``, in any letter case; `OptionError` for others, and for a continuous query.
    """
    word = re.sub(r"[-_\s]|=true$", "", text.lower())
    if word in _NOW:
        return AVAILABLE_NOW
    interval = _PROCESSING_TIME.sub("", text.strip(), count=1).strip("'\") ")
    if _INTERVAL.fullmatch(interval):
        return interval
    remedy = "write available-now, or an interval such as '10 seconds' or '1 minute 30 seconds'"
    if word.startswith("continuous"):
        remedy = f"Spark passes a Python sink no rows in continuous mode; {remedy}"
    raise OptionError("--trigger", text, remedy)


def check_source(job: StreamJob, settings: Mapping[str, str], starts_spark: bool) -> None:
    """Refuse a source or a checkpoint that cannot work.

    With `starts_spark` Spark is started here with `settings` alone: only then are its settings
    known, and where a path without a scheme is.
    """
    fault = None if job.source_schema is None else ddl_fault(job.source_schema)
    if fault is not None:
        raise OptionError(
            "--source-schema", job.source_schema, f"{fault}; write it as 'id BIGINT, name STRING'"
        )
    kind = job.source_format.lower()
    path = job.source_path or job.source_options.get("path")
    if kind in _FILES + _FILES_OF_KNOWN_COLUMNS and not (path and path.strip()):
        raise OptionError("--source-path", None, f"a {kind} source reads a path")
    infers = settings.get(_INFERENCE, "false").lower() == "true"
    if starts_spark and kind in _FILES and job.source_schema is None and not infers:
        raise OptionError(
            "--source-schema", None, f"a stream of {kind} files does not infer its columns"
        )
    local = _local(path, starts_spark and _DEFAULT_FS not in settings)
    if path and local and not (glob(local) if has_magic(local) else Path(local).exists()):
        raise OptionError("--source-path", path, "there is nothing at this path")
    _check_checkpoint(job)


def _check_checkpoint(job: StreamJob) -> None:
    if not job.checkpoint.strip():
        raise OptionError("--checkpoint", job.checkpoint, "name a folder")
    local = _local(job.checkpoint, sure=True)
    if local and Path(local).is_file():
        raise OptionError("--checkpoint", job.checkpoint, "this is a file; name a folder")
    if job.checkpoint.rstrip("/") == job.table_options["path"].rstrip("/"):
        raise OptionError(
            "--checkpoint", job.checkpoint, "this is the table; give the checkpoint its own folder"
        )


def _local(path: str | None, sure: bool) -> str | None:
    """Return a path of this machine; None if it may be elsewhere."""
    if not path or scheme_of(path) != "file":
        return None
    if path.lower().startswith("file:"):
        return re.sub(r"^file:(//)?", "", path, flags=re.IGNORECASE)
    return path if sure else None

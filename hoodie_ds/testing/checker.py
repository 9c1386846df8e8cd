"""An independent check of a table's files, by Hudi's file grammar and without this library's code.

Timeline layouts 1 (table version 6) and 2 (versions 8 and 9). Base files are opened, log files are
walked block by block.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

_INSTANT: Final = re.compile(
    r"\.hoodie/(timeline/)?(\d{14}|\d{17})(?:_(\d{17}))?\.([a-z]+)(?:\.(requested|inflight))?"
)
_BASE: Final = re.compile(r"([A-Za-z0-9-]+)_(\d+-\d+-\d+)_(\d+)\.parquet")
_LOG: Final = re.compile(r"\.([A-Za-z0-9-]+)_(\d+)\.log\.(\d+)_(\d+-\d+-\d+)")
_CDC: Final = re.compile(_LOG.pattern + r"\.cdc")
_LOGGED: Final = re.compile(rb"^hoodie\.table\.cdc\.enabled=true$", re.MULTILINE)
_BUCKET: Final = re.compile(r"\d{8}")
_WRITES: Final = ("commit", "deltacommit", "replacecommit")
_SAVEPOINT: Final = "savepoint"
_COMPLETES_AS: Final = {
    "compaction": "commit",
    "logcompaction": "deltacommit",
    "clustering": "replacecommit",
}
_REWRITES: Final = ("COMPACT", "CLUSTER")
_CDC_DATA: Final = 6
_CLEANED: Final[dict[str, int]] = {}
"""The files of change data where a clean has deleted them."""
_MAGIC: Final = b"#HUDI#"
_TIME: Final = "_hoodie_commit_time"


def check_table(
    files: Mapping[str, bytes],
    *,
    settled: bool = False,
    buckets: bool = False,
    archived: Collection[str] = (),
) -> list[str]:
    """Return what is wrong with a table; empty if nothing is.

    Parameters
    ----------
    files : mapping of str to bytes
        All files below the base path.
    settled : bool
        Whether recovery has just run: nothing may be pending, and a commit must name every data
        file on storage.
    buckets : bool
        Whether file ids begin with a bucket's number: then each bucket has one live file group.
    archived : collection of str
        Times of archived commits, whose files are not checked.
    """
    wrong: list[str] = []
    if any(files) and ".hoodie/hoodie.properties" not in files:
        wrong.append("files but no hoodie.properties")
    commits: dict[str, dict[str, Any]] = {}
    ends = _ends(files, wrong)
    for time, (action, reached) in sorted(_states(files, archived, wrong).items()):
        if "completed" in reached and action in _WRITES:
            path = reached["completed"]
            try:
                commits[time] = _body(files[path])
            except (ValueError, EOFError):
                wrong.append(f"{path} is neither JSON nor Avro")
        elif "completed" not in reached and settled:
            wrong.append(f"{time}.{action} is pending")
    times = {*commits, *archived}
    may_go = _check_cleans(files, commits, ends, archived, wrong)
    there = {time: _left(body, files, may_go) for time, body in commits.items()}
    named = {
        path
        for time in there
        for path in _check_commit(files, time, there, times, bool(ends), wrong)
    }
    _check_groups(commits, named, buckets, wrong)
    unnamed = [path for path in files if path[:7] != ".hoodie" and path not in named]
    return wrong + [
        f"{path} is named by no commit"
        for path in unnamed
        if settled and _data_name(path) and not _is_archived(path, files[path], archived)
    ]


def _body(data: bytes) -> dict[str, Any]:
    """Parse a commit: JSON of layout 1, an Avro container of layout 2."""
    if data[:3] == b"Obj":
        (record,) = fastavro.reader(io.BytesIO(data))
        assert isinstance(record, dict), record
        return record
    body: dict[str, Any] = json.loads(data)
    return body


def _ends(files: Mapping[str, bytes], wrong: list[str]) -> dict[str, str]:
    """Return completion times by requested time, of layout 2; those of writes must differ.

    A savepoint has the time of the commit that it keeps, and its own completion time.
    """
    found: dict[tuple[str, bool], str] = {}
    of_writes: Counter[str] = Counter()
    for match in filter(None, map(_INSTANT.fullmatch, sorted(files))):
        of_layout_2, time, end, action, state = match.groups()
        if not of_layout_2 or state or action == "inflight":
            continue
        if end is None or end <= time:
            wrong.append(f"{match[0]} does not say when it was completed, after {time}")
        elif found.setdefault((time, action == _SAVEPOINT), end) != end:
            wrong.append(f"{time} was completed twice, the second time as {match[0]}")
        elif action in _WRITES:
            of_writes[end] += 1
    common = [end for end, n in of_writes.items() if n > 1]
    wrong += [f"{end} is the completion time of several writes" for end in common]
    return {time: end for (time, is_savepoint), end in found.items() if not is_savepoint}


def _is_archived(path: str, data: bytes, archived: Collection[str]) -> bool:
    """Whether an archived commit wrote a data file, by its name or the blocks of a log file."""
    return any(time in path or time.encode() in data for time in archived)


def _data_name(path: str) -> re.Match[str] | None:
    name = path.rpartition("/")[2]
    return _BASE.fullmatch(name) or _LOG.fullmatch(name) or _CDC.fullmatch(name)


def _states(
    files: Mapping[str, bytes], archived: Collection[str], wrong: list[str]
) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the actions, and the files of their states, by time; archived ones may lack files."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for match in filter(None, map(_INSTANT.fullmatch, files)):
        _, time, _, action, state = match.groups()
        if action == _SAVEPOINT:  # it has the time of the commit that it keeps, and no request
            continue
        if action == "inflight":
            action, state = "commit", "inflight"
        action = _COMPLETES_AS.get(action, action)
        known, states = found.setdefault(time, (action, {}))
        states[state or "completed"] = match[0]
        if known != action:
            wrong.append(f"{time} is the time of a {known} and of a {action}")
    for time, (action, states) in found.items():
        if "inflight" in states and "requested" not in states:
            wrong.append(f"{time}.{action} is inflight and was not requested")
        if "completed" in states and "inflight" not in states and time not in archived:
            wrong.append(f"{time}.{action} is complete and was not inflight")
    return found


def _check_cleans(
    files: Mapping[str, bytes],
    commits: Mapping[str, dict[str, Any]],
    ends: Mapping[str, str],
    archived: Collection[str],
    wrong: list[str],
) -> set[str]:
    """Return the files that cleans plan to delete; each must have a newer file in its group.

    The newer file may be that of an archived commit, if an archived commit is later.
    """
    last_archived = max(archived, default="")
    newest: dict[tuple[str, str], str] = {}
    for time, body in sorted(commits.items()):
        for partition, ids in (body.get("partitionToReplaceFileIds") or {}).items():
            newest |= dict.fromkeys(((partition, file_id) for file_id in ids), time)
        for partition, stats in (body.get("partitionToWriteStats") or {}).items():
            bases = (stat for stat in stats if stat["path"].endswith(".parquet"))
            newest |= dict.fromkeys(((partition, stat["fileId"]) for stat in bases), time)
    may_go = set()
    for plan in (path for path in files if path.endswith(".clean.requested")):
        (body,) = fastavro.reader(io.BytesIO(files[plan]))
        for partition, going in body["filePathsToBeDeletedPerPartition"].items():
            for name in (file["filePath"].rpartition("/")[2] for file in going):
                path = f"{partition}/{name}".lstrip("/")
                may_go.add(path)
                match = _data_name(name)
                start = match and (match[3] if match.re is _BASE else match[2])
                if match and match.re is _LOG:
                    start = ends.get(match[2], match[2])
                newer = newest.get((partition, match[1]), last_archived) if match else ""
                if newer <= str(start):
                    wrong.append(f"{plan} deletes {path}, which has no successor")
    return may_go


def _left(
    body: dict[str, Any], files: Mapping[str, bytes], may_go: Collection[str]
) -> dict[str, Any]:
    """Return a commit without the files that a clean has deleted."""
    stats = body.get("partitionToWriteStats") or {}
    gone = set(may_go).difference(files)
    left: dict[str, list[dict[str, Any]]] = {}
    for partition, found in stats.items():
        left[partition] = [stat for stat in found if stat["path"] not in gone]
        for stat in left[partition]:
            logged = stat.get("cdcStats") or {}
            stat["cdcStats"] = logged if gone.isdisjoint(logged) else _CLEANED
    return {**body, "partitionToWriteStats": left}


def _check_commit(
    files: Mapping[str, bytes],
    time: str,
    commits: Mapping[str, dict[str, Any]],
    times: Collection[str],
    own_logs: bool,
    wrong: list[str],
) -> set[str]:
    """Check the files of a commit, and return them; log files of layout 2 are named after it."""
    named: set[str] = set()
    body = commits[time]
    for partition, stats in (body.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            path, data = stat["path"], files.get(stat["path"])
            match = _data_name(path)
            if data is None:
                wrong.append(f"{path}, named by {time}, is missing")
            elif len(data) != stat["fileSizeInBytes"]:
                wrong.append(f"{path} has {len(data)} bytes, {time} says otherwise")
            elif path.endswith(".parquet"):
                wrong += _check_base(data, path, stat["numWrites"], times)
                wrong += _check_changes(files, time, stat, body.get("operationType"))
            elif not _is_log(data):
                wrong.append(f"{path} is not a whole log file")
            if path in named:
                wrong.append(f"{path} is named twice by {time}")
            if not match or (match[1], path.rpartition("/")[0]) != (stat["fileId"], partition):
                wrong.append(f"{path} is not a file of {partition}/{stat['fileId']}")
            elif (match[3] if match.re is _BASE else match[2] if own_logs else time) != time:
                wrong.append(f"{path} is a file of another instant than {time}")
            named |= {path, *stat["cdcStats"]}
    return named


def _check_changes(
    files: Mapping[str, bytes], time: str, stat: Mapping[str, Any], operation: object
) -> list[str]:
    """Return what is wrong with a base file's change data, by the rules of Hudi's extractor."""
    path = stat["path"]
    logged: Mapping[str, int] = stat["cdcStats"]
    if logged is _CLEANED:
        return []
    needed = _LOGGED.search(files[".hoodie/hoodie.properties"]) and operation not in _REWRITES
    if not logged and not needed:
        return []
    counts = [stat[f"num{what}"] for what in ("UpdateWrites", "Deletes")]
    if not logged:
        is_new = not any(counts) and stat["numWrites"] == stat["numInserts"]
        return [] if is_new else [f"{path} has no change data"]
    base, wrong, found = _BASE.fullmatch(path.rpartition("/")[2]), [], 0
    for name, size in logged.items():
        data, match = files.get(name, b""), _CDC.fullmatch(name.rpartition("/")[2])
        if len(data) != size or not _is_log(data):
            wrong.append(f"{name} is not the whole file of change data that {time} names")
            continue
        found += sum(_changes(data))
        if not match or not base or (match[1], match[4], match[2]) != base.groups():
            wrong.append(f"{name} is not change data of {path}")
    if operation not in _REWRITES and found != sum(counts) + stat["numInserts"] and not wrong:
        wrong.append(f"{path} has {found} changes, {time} says otherwise")
    return wrong


def _changes(data: bytes) -> Iterator[int]:
    """Yield the number of records of each block of a file of change data."""
    at = 0
    while at < len(data):
        _, kind, entries = struct.unpack_from(">iii", data, at + 14)
        start = at + 26
        for _ in range(entries):
            start += 8 + struct.unpack_from(">ii", data, start)[1]
        yield struct.unpack_from(">ii", data, start + 8)[1] if kind == _CDC_DATA else -1
        at += 14 + int.from_bytes(data[at + 6 : at + 14], "big")


def _check_base(data: bytes, path: str, num_writes: int, times: Collection[str]) -> list[str]:
    try:
        rows = pq.ParquetFile(pa.BufferReader(data)).read([_TIME], use_threads=False)
    except (pa.ArrowException, OSError) as error:
        return [f"{path} cannot be read: {error}"]
    wrong = [] if rows.num_rows == num_writes else [f"{path} has {rows.num_rows} rows"]
    unknown = set(rows.column(0).to_pylist()).difference(times)
    return wrong + [f"{path} has rows of instant {time}, not a commit" for time in unknown]


def _is_log(data: bytes) -> bool:
    """Whether blocks fill the file: magic, length, content, the length again."""
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at + 6 : at + 14], "big", signed=True)
        end = at + 14 + length
        whole = length >= 8 and data[end - 8 : end] == struct.pack(">q", length + len(_MAGIC))
        if data[at : at + 6] != _MAGIC or not whole:
            return False
        at = end
    return at > 0


def _check_groups(
    commits: Mapping[str, dict[str, Any]], named: set[str], buckets: bool, wrong: list[str]
) -> None:
    """Check that a slice has one base file, and a bucket one live file group."""
    found = ((path, match) for path in named if (match := _data_name(path)))
    slices = Counter((path.rpartition("/")[0], m[1], m[3]) for path, m in found if m.re is _BASE)
    wrong += [f"{slice_} has {n} base files" for slice_, n in slices.items() if n > 1]
    live: set[tuple[str, str]] = set()
    for _, body in sorted(commits.items()):
        for partition, ids in (body.get("partitionToReplaceFileIds") or {}).items():
            live -= {(partition, file_id) for file_id in ids}
        for partition, stats in (body.get("partitionToWriteStats") or {}).items():
            live |= {(partition, stat["fileId"]) for stat in stats}
    begun = Counter((partition, file_id[:8]) for partition, file_id in live)
    wrong += [f"bucket {prefix} of {partition!r} has {n} file groups"
              for (partition, prefix), n in begun.items()
              if buckets and n > 1 and _BUCKET.fullmatch(prefix)]  # fmt: skip

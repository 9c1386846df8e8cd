"""Paths of the timeline and its companions, relative to a table's base path.

The layouts of the timeline differ in the folders and names of the files of instants (`Layout`);
all else is the same in each.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

import xxhash

from hoodie_ds.timeline.instant import COMPLETES_AS, Action, Instant, State

HOODIE: Final = ".hoodie"
PROPERTIES: Final = f"{HOODIE}/hoodie.properties"
PROPERTIES_BACKUP: Final = f"{HOODIE}/hoodie.properties.backup"
METADATA_TABLE: Final = f"{HOODIE}/metadata"
INDEX_DEFINITIONS: Final = f"{HOODIE}/.index_defs/index.json"
BUCKET_INDEX: Final = f"{HOODIE}/.bucket_index"
HASHING_CONFIGS: Final = f"{BUCKET_INDEX}/partition_bucket_index_meta/configs"
HASHING_RINGS: Final = f"{BUCKET_INDEX}/consistent_hashing_metadata"
"""Hudi's hash ranges of buckets that are split and merged."""
TEMP: Final = f"{HOODIE}/.temp"
OURS: Final = f"{TEMP}/hoodie_ds"
"""Folder of this library's own temporary files.

To roll an instant back, Hudi lists its folder in ``.temp``. If that has anything but markers, Hudi
looks for those of a timeline server, finds none and deletes no data file. It only checks whether
other names in ``.temp`` are earlier instants of live writers, and letters sort after all digits.
"""
PINNED_TIMELINES: Final = f"{OURS}/views"
LATER_TIMELINE: Final = f"{HOODIE}/timeline"
"""Folder of the timeline of table versions 8 and above."""
PARTITION_METAFILE: Final = ".hoodie_partition_metadata"

HEARTBEATS: Final = f"{HOODIE}/.heartbeat"
FILE_LOCK: Final = f"{HOODIE}/lock"
LOCKS: Final = f"{HOODIE}/.locks"
TABLE_LOCK: Final = f"{LOCKS}/table_lock.json"
"""Hudi's lock on object stores."""
LEASES: Final = f"{LOCKS}/leases"
DECISIONS: Final = f"{LOCKS}/decisions"
FORMER_DECISIONS: Final = f"{LOCKS}/turns"
"""Where releases before this one kept the decision log."""
WRITERS: Final = f"{LOCKS}/writers"
LEFT_OUT: Final = "at_"
"""Prefix of files that name the commit that does not carry a writer."""

SUMMARIES: Final = f"{LOCKS}/summaries"
UNDONE: Final = f"{LOCKS}/undone"
FOLDED_UNDONE: Final = "times_"
"""Prefix of files that hold many marks; a letter, as other names are times."""
LATE: Final = f"{LOCKS}/late"
FAILED_SERVICES: Final = f"{LOCKS}/failed_services"
CONVERTED: Final = f"{LOCKS}/converted"
"""The newest time of the table before its timeline was converted to its layout."""
STORAGE_CLOCK: Final = f"{LOCKS}/clock"

_INSTANT_NAME: Final = re.compile(
    r"([0-9]{20}|[0-9]{17}|[0-9]{14})(?:_([0-9]{17}))?\.(.+)", re.ASCII
)
_MARKER = ".marker."
_MANIFEST = "manifest_"
_MANIFEST_NAME = re.compile(_MANIFEST + r"(\d{1,10})\.json", re.ASCII)
_FORMERLY_HERE = re.compile(
    re.escape(TEMP) + r"/(\d+/(claim|completion|aborted|start_[^/]+|manifest_\d+\.json|\d+\.plan"
    r"|(fill|staged|compacted|taken|clustered)/[^/]+)|views/[^/]+)",
    re.ASCII,
)
"""Paths of temporary files before they had a folder of their own, after the markers' folder."""


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


def _pending_name(instant: Instant) -> str:
    middle = f".{instant.action.value}"
    if instant.state is State.INFLIGHT and instant.action is Action.COMMIT:
        middle = ""  # as in Hudi
    return f"{instant.time}{middle}.{instant.state.value}"


class _LayoutV1:
    """Layout 1, of tables of version 6: ``.hoodie/<time>.<action>[.<state>]``.

    A compaction completes under the name of a commit, a log compaction as a delta commit.
    """

    version: Final = 1
    folder: Final = HOODIE
    clustering: Final = Action.REPLACE_COMMIT

    def file_name(self, instant: Instant) -> str:
        time, action = instant.time, instant.action
        if instant.state is not State.COMPLETED:
            return _pending_name(instant)
        done = action if action is Action.CLUSTERING else COMPLETES_AS.get(action, action)
        return f"{time}.{done.value}"

    def parse(self, name: str) -> Instant | None:
        time, _, form = name.partition(".")
        found = _FORMS_V1.get(form)
        # Python also accepts digits of other scripts: such a name is not an instant.
        if found is None or len(time) not in _LENGTHS_V1 or not (time.isascii() and time.isdigit()):
            return None
        return Instant(time, *found)


V1: Final[Layout] = _LayoutV1()
_LENGTHS_V1: Final = (14, 17, 20)
"""Digits of times; in layout 1 services of a metadata table take that of a commit and a suffix."""

# A compaction never completes under its own name: the names that it shares are others' already.
_FORMS_V1: Final[dict[str, tuple[Action, State]]] = {}
for _action in filter(lambda action: action is not Action.CLUSTERING, Action):
    for _state in State:
        _FORMS_V1.setdefault(V1.file_name(Instant("", _action, _state))[1:], (_action, _state))


class _LayoutV2:
    """Layout 2, of tables of versions 8 and 9.

    ``.hoodie/timeline/<time>[_<completion>].<form>``: names of pending instants are those of layout
    1, and a completed one has its completion time in the name. A clustering is an action of its own
    until it completes, as a replace commit. An instant that completed before its table was upgraded
    may be without a completion time (Hudi's ``InstantFileNameParserV2``).
    """

    version: Final = 2
    folder: Final = LATER_TIMELINE
    clustering: Final = Action.CLUSTERING

    def file_name(self, instant: Instant) -> str:
        time, action = instant.time, instant.action
        if instant.state is not State.COMPLETED:
            return _pending_name(instant)
        end = f"_{instant.completion_time}" if instant.completion_time else ""
        return f"{time}{end}.{COMPLETES_AS.get(action, action).value}"

    def parse(self, name: str) -> Instant | None:
        match = _INSTANT_NAME.fullmatch(name)
        if match is None or match[3] not in _FORMS_V2:
            return None
        action, state = _FORMS_V2[match[3]]
        if match[2] is not None and state is not State.COMPLETED:
            return None
        return Instant(match[1], action, state, layout=self.version, completion_time=match[2] or "")


V2: Final[Layout] = _LayoutV2()

_FORMS_V2: Final = {
    V2.file_name(Instant("", action, state))[1:]: (action, state)
    for action in Action
    for state in State
    if state is not State.COMPLETED or action not in COMPLETES_AS
}

LAYOUTS: Final[dict[int, Layout]] = {layout.version: layout for layout in (V1, V2)}
"""The known layouts, by ``hoodie.timeline.layout.version``."""


def instant_path(instant: Instant) -> str:
    """Path of the file that records an instant's state."""
    layout = LAYOUTS[instant.layout]
    return f"{layout.folder}/{layout.file_name(instant)}"


def marker_folder(time: str) -> str:
    """Folder of an instant's markers, as in Hudi; it must hold nothing else."""
    return f"{TEMP}/{time}"


def work_folder(time: str) -> str:
    """Folder of the other files of an unfinished instant: claim, staged rows, manifest."""
    return f"{OURS}/{time}"


def claim_path(time: str) -> str:
    """Path of the file by which a writer claims an instant time, whatever its action."""
    return f"{work_folder(time)}/claim"


def begun_path(time: str) -> str:
    """Path of the mark that this library carries out a plan, whichever engine made it."""
    return f"{work_folder(time)}/begun"


def start_path(time: str, attempt: str) -> str:
    """Path of the file by which the tasks of a batch agree on a later time than was proposed."""
    return f"{work_folder(time)}/start_{attempt}"


def completion_path(time: str) -> str:
    """Path of the file by which processes that end an instant agree on its completion time."""
    return f"{work_folder(time)}/completion"


def manifest_path(time: str, num_batches: int = 1) -> str:
    """Path of a pending-commit manifest of the first `num_batches` micro-batches of an instant.

    It has the bytes of the completed file, before they count.
    """
    return f"{work_folder(time)}/{_MANIFEST}{num_batches}.json"


def manifest_number(path: str) -> int | None:
    """Number of micro-batches in a manifest; None for the path of another file."""
    name = path.rpartition("/")[2]
    match = _MANIFEST_NAME.fullmatch(name)
    return int(match.group(1)) if match else None


def commit_path(instant: Instant) -> str:
    """Path of the file that says what a completed write, or an open one with a manifest, did."""
    if instant.num_batches:
        return manifest_path(instant.time, instant.num_batches)
    return instant_path(instant)


def heartbeat_path(time: str) -> str:
    """Path of the file whose age shows whether the writer of an instant lives, as in Hudi."""
    return f"{HEARTBEATS}/{time}"


def numbered_path(folder: str, number: int) -> str:
    """Path of a numbered file of a folder: `DECISIONS`, `LEASES`."""
    return f"{folder}/{number:012d}"


def number_in(path: str) -> int | None:
    """Number of a numbered file; None for the path of another file."""
    name = path.rpartition("/")[2]
    return int(name) if len(name) == 12 and name.isdigit() and name.isascii() else None


def writer_folder(name: str) -> str:
    """Folder of what commits do not carry of a writer."""
    return f"{WRITERS}/{xxhash.xxh3_128_hexdigest(name.encode())}"


def put_aside_path(name: str, number: int, time: str = "") -> str:
    """Path of the batches of a writer, up to a number, that the commit of `time` does not carry.

    Releases before this one did not store the time.
    """
    left_out_by = f"{LEFT_OUT}{time}_" if time else ""
    return f"{writer_folder(name)}/{left_out_by}{number:019}"


def rolled_back_folder(name: str) -> str:
    """Folder of the numbers of a writer's batches that were rolled back."""
    return f"{writer_folder(name)}/taken_back"


def undone_path(time: str) -> str:
    """Path of the mark that an instant was rolled back by a rollback that is archived."""
    return f"{UNDONE}/{time}"


def late_path(time: str, digest: str) -> str:
    """Path of a note of files that may come late under an instant that has ended.

    An instant may have several notes: `digest` is of the note's content.
    """
    return f"{LATE}/{time}_{digest}"


def aborted_path(time: str) -> str:
    """Path of the mark that an instant was given up."""
    return f"{work_folder(time)}/aborted"


def staged_path(time: str, name: str) -> str:
    """Path of a file of staged rows."""
    return f"{work_folder(time)}/staged/{name}.arrow"


def keys_path(time: str, name: str) -> str:
    """Path of a task's file with entries of the record index."""
    return f"{work_folder(time)}/keys/{name}"


def reservation_path(time: str, batch_number: int, partition_path: str, file_id: str) -> str:
    """Path of the mark by which a task claims a small file for its inserts."""
    partition = xxhash.xxh3_64_hexdigest(partition_path.encode())
    return f"{work_folder(time)}/fill/{batch_number}_{partition}_{file_id}"


def compacted_path(time: str, partition_path: str, file_id: str) -> str:
    """Path of what a compaction has made of a file group, before the compaction is complete."""
    partition = xxhash.xxh3_64_hexdigest(partition_path.encode())
    return f"{work_folder(time)}/compacted/{partition}_{file_id}.json"


def compaction_claims(time: str) -> str:
    """Folder of the marks by which tasks take file groups of a compaction."""
    return f"{work_folder(time)}/taken"


def compaction_claim_path(time: str, attempt: str, partition_path: str, file_id: str) -> str:
    """Path of the mark by which a task of a batch takes a file group of a compaction."""
    partition = xxhash.xxh3_64_hexdigest(partition_path.encode())
    return f"{compaction_claims(time)}/{attempt}_{partition}_{file_id}"


def clustered_path(time: str, number: int, digest: str) -> str:
    """Path of the result of a group of a clustering plan, before the clustering is complete.

    `number` is the group's in the plan, `digest` of the committed files that it was made of.
    """
    return f"{work_folder(time)}/clustered/{number}_{digest}.json"


def marker_path(time: str, file_path: str, kind: str) -> str:
    """Path of the marker that announces a data file; `kind` is CREATE, MERGE or APPEND."""
    return f"{marker_folder(time)}/{file_path}{_MARKER}{kind}"


def moved_path(path: str) -> str | None:
    """New path of a temporary file of an earlier release; None if it is none."""
    is_old = _MARKER not in path and _FORMERLY_HERE.fullmatch(path) is not None
    return f"{OURS}{path[len(TEMP) :]}" if is_old else None


def instant_of_temporary(path: str) -> str | None:
    """Time of the instant that a temporary file belongs to; None if it belongs to none."""
    folder = OURS if path.startswith(f"{OURS}/") else TEMP
    time = path[len(folder) + 1 :].partition("/")[0]
    return time if time.isascii() and time.isdigit() else None


def marked_file(time: str, path: str) -> str | None:
    """Data file that a marker announces; None for a path that is not a marker of `time`.

    A rollback deletes what markers announce. So whatever process made the marker, only a log file
    or a base file of that very instant, outside of ``.hoodie``, counts as announced.
    """
    prefix = f"{marker_folder(time)}/"
    head, found, _ = path.rpartition(_MARKER)
    file = head[len(prefix) :]
    if not found or not head.startswith(prefix) or file.startswith(f"{HOODIE}/"):
        return None
    name = file.rpartition("/")[2]
    is_data = name.endswith(f"_{time}.parquet") or (name.startswith(".") and ".log." in name)
    return file if is_data else None


def in_partition(partition_path: str, name: str) -> str:
    """Path of a file of a partition; the partition path is empty in a table without partitions."""
    return f"{partition_path}/{name}" if partition_path else name

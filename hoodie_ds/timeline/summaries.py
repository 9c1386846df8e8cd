"""Summaries of what many commits say, so that a new process need not read each of them.

A summary is no part of the table: it may be missing, late or damaged, and readers check it against
the timeline. Its name has the last instant time that it covers, so that writers see whether another
one is due without reading it.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import xxhash

from hoodie_ds.errors import StorageError
from hoodie_ds.log import Log
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import SUMMARIES
from hoodie_ds.timeline.settled_instants import MALFORMED

_VERSION: Final = 1
_KEPT: Final = 2
_LARGEST: Final = 1 << 30
_TIME: Final = re.compile(r"[0-9]{14,17}")
_CHECKSUM_BYTES: Final = 16


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SummaryFile:
    """A stored summary up to an instant time; `size` in bytes."""

    up_to: str = ""
    size: int = 0


def newest_summary(storage: Storage, kind: str) -> SummaryFile:
    """Return the newest summary of a kind; an empty one if there is none."""
    return max(_stored(storage, kind), key=lambda found: found.up_to, default=SummaryFile())


def read_summaries(
    storage: Storage, kind: str, make: Callable[[Mapping[str, Any]], T]
) -> Iterator[T]:
    """Yield `make` of the content of each usable summary of a kind, the newest first."""
    stored: list[SummaryFile] = []
    with suppress(StorageError):
        stored += _stored(storage, kind)
    for found in sorted(stored, key=lambda one: one.up_to, reverse=True):
        made = _made(storage, _path(kind, found.up_to), make)
        if made is not None:
            yield made


def _made(storage: Storage, path: str, make: Callable[[Mapping[str, Any]], T]) -> T | None:
    try:
        return make(_parse(storage.read(path)))
    except (StorageError, *MALFORMED) as error:
        Log(storage.root).debug("%s cannot be used: %s", path, error)
        return None


def write_summary(storage: Storage, kind: str, time: str, content: Mapping[str, object]) -> None:
    """Write a summary of a kind up to an instant time as JSON, and delete older ones.

    Nothing depends on a summary that cannot be written.
    """
    body = zlib.compress(json.dumps({"version": _VERSION, "up_to": time, **content}).encode(), 1)
    storage.replace(_path(kind, time), xxhash.xxh64_hexdigest(body).encode() + body)
    for old in sorted(found.up_to for found in _stored(storage, kind))[:-_KEPT]:
        storage.delete(_path(kind, old))


def delete_summaries(
    storage: Storage, kind: str, since: str, is_false: Callable[[Mapping[str, Any]], bool]
) -> None:
    """Delete the summaries of a kind up to a time or a later one whose content is false."""
    for found in _stored(storage, kind):
        path = _path(kind, found.up_to)
        if found.up_to >= since and _made(storage, path, is_false):
            storage.delete(path)


def _parse(data: bytes) -> dict[str, Any]:
    checksum, body = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
    if xxhash.xxh64_hexdigest(body).encode() != checksum:
        raise ValueError("its checksum does not fit")
    content = json.loads(zlib.decompressobj().decompress(body, _LARGEST))
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise ValueError("it is of another release")
    return content


def _path(kind: str, time: str) -> str:
    return f"{SUMMARIES}/{kind}/{time}"


def _stored(storage: Storage, kind: str) -> list[SummaryFile]:
    listed = storage.list(f"{SUMMARIES}/{kind}")
    found = (SummaryFile(status.path.rpartition("/")[2], status.size) for status in listed)
    return [one for one in found if _TIME.fullmatch(one.up_to)]

"""Micro-batches that a rollback or restore by hand has removed from a table.

A stream that restarts from its checkpoint continues after the batches that Spark has committed. So
the process that removes a batch first records its number, and a later batch is refused as long as
the table lacks that one. The records need not be deleted: once the batch is written again, its
number no longer matters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress

import xxhash

from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.paths import rolled_back_folder


def record_rolled_back(
    storage: Storage, commits: Iterable[CommitMetadata], kept: Iterable[CommitMetadata]
) -> None:
    """Record the batches of commits that are about to be rolled back."""
    staying: dict[str, int] = {}
    for commit in kept:
        for query, numbers in commit.batches.items():
            staying[query] = max(staying.get(query, -1), *numbers, -1)
    undone: dict[str, set[int]] = {}
    for commit in commits:
        for query, numbers in commit.batches.items():
            last = staying.get(query, -1)
            undone.setdefault(query, set()).update(n for n in numbers if n > last)
    for query, found in undone.items():
        if found:
            body = json.dumps({"query": query, "batches": sorted(found)}).encode()
            path = f"{rolled_back_folder(query)}/{xxhash.xxh3_64_hexdigest(body)}"
            with suppress(AlreadyExistsError):  # rolled back before
                storage.put_if_absent(path, body)


def rolled_back_batches(storage: Storage, query: str) -> frozenset[int]:
    """Return the numbers of a query's batches that were ever rolled back."""
    found: set[int] = set()
    for status in storage.list(rolled_back_folder(query)):
        with suppress(NotFoundError):
            found |= _parse(storage.read(status.path), f"{storage.root}/{status.path}")
    return frozenset(found)


def _parse(body: bytes, path: str) -> set[int]:
    try:
        return {int(number) for number in json.loads(body)["batches"]}
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise CorruptFileError(
            f"{path} does not say which batches were rolled back: {body[:100]!r}",
            "restore it from a copy of the table, or delete it if the stream may continue without "
            "them",
        ) from error

"""Requests of a micro-batch into 8 file groups, and of a read, on each object store.

    .venv/bin/python benchmarks/requests.py [--each]

Third batch of a stream into a table with the bucket index, without table services, by a new driver
and a new task, then a read of all rows. The servers are those of the tests, as far as they are
installed. `--each` prints the requests.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import s3fs
from results import emit
from upload_memory import servers

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cloud_servers import Answer, forward, proxy
from tests.s3_server import S3Server
from tests.store_server import StoreServer

_GOAL = 30
_OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "8",
}


@contextmanager
def counted(server: StoreServer) -> Iterator[tuple[StoreServer, list[str]]]:
    """Yield a server, and the list of the requests that it gets: through a proxy, or by s3fs."""
    asked: list[str] = []

    def passed(port: int, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        asked.append(f"{method} {unquote(target)}")
        return forward(port, method, target, headers, body)

    if isinstance(server, S3Server):
        send = s3fs.core._error_wrapper

        def sent(
            method: Callable[..., Any], *, kwargs: dict[str, Any] | None = None, **rest: object
        ) -> object:
            given = kwargs or {}
            if "Bucket" in given:  # else it is a helper of s3fs, which asks by another call
                asked.append(f"{method.__name__} {given.get('Key') or given.get('Prefix', '')}")
            return send(method, kwargs=kwargs, **rest)

        s3fs.core._error_wrapper = sent
        yield server, asked
        s3fs.core._error_wrapper = send
        return
    with proxy(urlsplit(server.endpoint).port or 0, passed) as endpoint:
        yield replace(server, endpoint=endpoint), asked


def measure(server: StoreServer, kind: str, asked: list[str]) -> dict[str, list[str]]:
    """Return the requests of each phase."""
    place = server.url(f"/requests/{kind}")
    options = {**_OPTIONS, "hoodie.datasource.write.table.type": kind, **server.table_options}
    writer = Coordinator.of(WriteOptions.parse({"path": place, **options}))
    phases: dict[str, list[str]] = {}

    def ended(phase: str) -> None:
        phases[phase] = asked.copy()
        asked.clear()

    for number in range(3):
        rows = pa.table({"id": [f"k{key}" for key in range(400)], "ts": [number] * 400})
        asked.clear()
        batch = writer.begin(rows.schema)
        ended("begin")
        id_ = BatchId("query", number)
        message = write_task(batch, TaskId(), id_, rows.to_batches(), sole_writer=True)
        ended("task")
        writer.commit([message])
        ended("commit")
        assert len(message.statuses) == 8
    assert HoodieTable(place, options).read().num_rows == 400
    ended("read")
    return phases


def main() -> None:
    """Count for each store and table type."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", action="store_true")
    chosen = parser.parse_args()
    for name, starting in servers():
        with starting as server, counted(server) as (behind, asked):
            for kind, short in (("COPY_ON_WRITE", "COW"), ("MERGE_ON_READ", "MOR")):
                phases = measure(behind, kind, asked)
                counts = {phase: len(requests) for phase, requests in phases.items()}
                batch = sum(counts.values()) - counts["read"]
                emit(f"requests of a micro-batch, {short}, {name}", batch, goal=_GOAL, **counts)
                for phase, requests in phases.items() if chosen.each else ():
                    print(phase, *requests, sep="\n  ")


if __name__ == "__main__":
    main()

"""Peak resident memory of a process that writes one large data file to an object store.

    .venv/bin/python benchmarks/upload_memory.py --mb 2048

One task appends rows to one file group, without compression. The servers are those of the tests, as
far as they are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from peak_memory import MB, batches
from results import emit

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import cloud_servers, s3_server
from tests.store_server import StoreServer

_OPTIONS = "OPTIONS_OF_THE_TABLE"


def servers() -> Iterator[tuple[str, AbstractContextManager[StoreServer]]]:
    """Yield each server that is installed, not yet started."""
    if not s3_server.MISSING:
        yield "S3", s3_server.running()
    if gcs := cloud_servers.find_fake_gcs():
        yield "Google", cloud_servers.running_fake_gcs(gcs)
    if azurite := cloud_servers.find_azurite():
        yield "Azure", cloud_servers.running_azurite(azurite)


def write(place: str, megabytes: int) -> dict[str, int]:
    """Write a table of one data file in this process; returns sizes in MB."""
    options = {
        "path": place,
        "hoodie.table.name": "t",
        "hoodie.parquet.max.file.size": f"{2 * megabytes}MB",
        "hoodie.parquet.compression.codec": "uncompressed",
        **json.loads(os.environ[_OPTIONS]),
    }
    coordinator = Coordinator.of(WriteOptions.parse(options))
    batch = coordinator.begin(next(batches(1)).schema)
    message = write_task(batch, TaskId(), None, batches(megabytes * MB), sole_writer=True)
    coordinator.commit([message])
    files = [status.stat.file_size_bytes for status in message.statuses]
    assert len(files) == 1
    # getrusage would count the process that this one was forked from, too
    status = Path("/proc/self/status").read_text("ascii")
    peak = int(status.partition("VmHWM:")[2].split()[0]) // 1024
    return {"peak": peak, "file": files[0] // MB}


def main() -> None:
    """Measure a file of a few parts and a large one, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=2048)
    parser.add_argument("--place", help="write there, in this process")
    chosen = parser.parse_args()
    if chosen.place:
        print(json.dumps(write(chosen.place, chosen.mb)))
        return
    for name, starting in servers():
        with ExitStack() as stack:
            server = stack.enter_context(starting)
            for size in (64, chosen.mb):
                place = server.url(f"/upload-memory/{size}")
                command = [sys.executable, __file__, "--place", place, "--mb", str(size)]
                answer = subprocess.run(
                    command,
                    env={**os.environ, _OPTIONS: json.dumps(server.table_options)},
                    check=True,
                    stdout=subprocess.PIPE,
                )
                found = json.loads(answer.stdout)
                emit(f"peak memory, a file on {name}, MB", found["peak"], size=found["file"])


if __name__ == "__main__":
    main()

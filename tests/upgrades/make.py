"""Write tables and checkpoints with the release on the path, for the tests that continue them.

``PYTHONPATH=CHECKOUT python tests/upgrades/make.py tests/upgrades/RELEASE.zip``, where the package
is not installed otherwise. It takes from the package what every release has.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pyarrow as pa

import hoodie_ds
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, SimulatedCrash

KEYED = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
VERSIONS = {"6": ".hoodie/*.deltacommit", "9": ".hoodie/timeline/*_*.deltacommit"}
"""Table versions, and what completed files of their delta commits are called."""
RELEASES = sorted(Path(__file__).parent.glob("*.zip"))
DEATHS = ("undone", "decided")
STREAMS: dict[str, dict[str, str]] = {
    "append": {"hoodie.table.name": "events"},
    "merge": {**KEYED, "hoodie.write.table.version": "9"},
}


def rows(number: int) -> pa.Table:
    """Return the rows of a numbered write: a key that all have, and one of its own."""
    return pa.table({"id": [0, number], "fare": [float(number)] * 2, "ts": [number] * 2})


def numbered(number: int) -> dict[str, str]:
    """Return the options of a numbered write."""
    return {
        "hoodie.datasource.write.streaming.checkpoint.identifier": "nightly",
        "hoodie.datasource.write.batch.identifier": str(number),
    }


def dead(version: str, death: str) -> dict[str, bytes]:
    """Return a table of three writes, whose fourth writer died before or after its decision."""
    storage = MemoryStorage()
    options = {**KEYED, "hoodie.write.table.version": version}
    table = hoodie_ds.HoodieTable("/t", options, storage=storage)
    for number in (1, 2, 3):
        table.upsert(rows(number), numbered(number))
        if number == 2:
            table.compact()
            table.savepoint()
    path = "*/manifest_*" if death == "undone" else VERSIONS[version]
    crash = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path=path)
    dying: Any = FaultyStorage(storage, [crash])
    with suppress(SimulatedCrash):
        hoodie_ds.HoodieTable("/t", options, storage=dying).upsert(rows(4), numbered(4))
    if not dying.crashed:
        raise RuntimeError(f"{version}, {death}: the writer did not die")
    return dict(storage.files)


def stream(spark: Any, folder: Path, kind: str) -> None:
    """Stream ten rows into a table, and ten more each time that it is called."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    events = source.selectExpr("value AS id", "value AS ts")
    writer = events.writeStream.format("hoodie_py").options(**STREAMS[kind])
    writer = writer.option("path", str(folder / "table"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def main(path: Path) -> None:
    """Write the file of this release."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").getOrCreate()
    hoodie_ds.register(spark)
    with ZipFile(path, "w", ZIP_DEFLATED) as held, TemporaryDirectory() as made:
        for version in VERSIONS:
            for death in DEATHS:
                for name, body in sorted(dead(version, death).items()):
                    held.writestr(f"{version}/{death}/{name}", body)
        for kind in STREAMS:
            for _ in range(2):
                stream(spark, Path(made) / kind, kind)
            # Spark has not noted that the second batch is done, and brings it again
            for noted in (Path(made) / kind / "checkpoint" / "commits").glob("*1*"):
                noted.unlink()
        for file in sorted(Path(made).rglob("*")):
            if file.is_file():
                held.write(file, file.relative_to(made).as_posix())
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

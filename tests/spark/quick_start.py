"""What lets the suite's Spark applications start sooner; `python -m tests.spark.quick_start`.

An application of a test lives for some twenty seconds and spends most of them on its start. A
third of that is saved by an archive of Spark's classes, which a JVM writes at its end and others
map into memory (Java's class data sharing), and some seconds by a Spark home without
``pyspark.zip``: Python compiles what it imports from there anew in every process, but not what is
installed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Final

JAVA_OPTIONS: Final = "JDK_JAVA_OPTIONS"
_PROJECT: Final = Path(__file__).parents[2]
# Java archives no class from a path with a blank, nor from behind a link to one.
_ELSEWHERE: Final = f"{tempfile.gettempdir()}/hoodie-spark-{zlib.crc32(bytes(_PROJECT))}"
HOME: Final = Path(_ELSEWHERE) if " " in str(_PROJECT) else _PROJECT / ".work" / "spark"
ARCHIVE: Final = HOME / "classes.jsa"
# The second compiler and parallel collectors cost a short life more than they bring.
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def environment() -> dict[str, str]:
    """Variables of Spark applications that live for seconds, as far as there is an archive."""
    if not ARCHIVE.exists():
        return {JAVA_OPTIONS: _SHORT_LIVED}
    # The launcher in front of Spark has other classes, and would say so on its standard output.
    quiet = "-Xlog:cds=off,cds+dynamic=off"
    options = f'{_SHORT_LIVED} "-XX:SharedArchiveFile={ARCHIVE}" {quiet}'
    return {JAVA_OPTIONS: options, "SPARK_HOME": str(HOME)}


def main() -> None:
    """Make the Spark home, and in it the archive, with what a stream into a table loads."""
    import pyspark

    shutil.rmtree(HOME, ignore_errors=True)
    for name in ("bin", "jars"):
        shutil.copytree(Path(pyspark.__path__[0], name), HOME / name, copy_function=_link)
    made = HOME / f"{os.getpid()}.jsa"
    os.environ["SPARK_HOME"] = str(HOME)
    os.environ[JAVA_OPTIONS] = f'{_SHORT_LIVED} "-XX:ArchiveClassesAtExit={made}"'
    os.environ["PYSPARK_PYTHON"] = sys.executable
    _stream()
    made.replace(ARCHIVE)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk
        shutil.copy2(source, target)


def _stream() -> None:
    """Run a query, and wait for the end of its JVM."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    import hoodie_ds

    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    hoodie_ds.register(spark)
    with tempfile.TemporaryDirectory() as folder:
        source = f"{folder}/source"
        spark.range(100).selectExpr("id", "id % 2 AS part").write.parquet(source)
        options = {
            "path": f"{folder}/table",
            "checkpointLocation": f"{folder}/checkpoint",
            "hoodie.table.name": "archived",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
        }
        rows = spark.readStream.schema("id bigint, part bigint").parquet(source)
        stream = hoodie_ds.shuffle_by_file_group(rows, options).writeStream.format("hoodie_py")
        stream.options(**options).trigger(availableNow=True).start().awaitTermination()
        assert spark.read.format("hoodie_py").load(options["path"]).count() == 100
    gateway = SparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()

"""The JVM side of the oracle: Apache Hudi on Spark 3.5, driven line by line.

Runs under the Python of the oracle's own virtual environment, never under ours, so it imports
nothing but pyspark. A request is one JSON line on stdin, its answer one JSON line on stdout;
tables travel as parquet. Everything else that would go to stdout goes to stderr.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.driver.host": "localhost",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # INT96, Spark's default, would come back as nanoseconds
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # answers with dates before 1582 are handed over as they are
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}

Request = dict[str, Any]


def session(jar: str, work_folder: str, settings: dict[str, str]) -> SparkSession:
    """Start the one Spark session of this process."""
    builder = SparkSession.builder.appName("jvm-hudi-oracle").master("local[2]")
    builder = builder.config("spark.jars", jar)
    builder = builder.config("spark.sql.warehouse.dir", os.path.join(work_folder, "warehouse"))
    for key, value in {**SETTINGS, **settings}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write(spark: SparkSession, request: Request) -> Request:
    """Write the parquet file ``data`` into the Hudi table at ``path``."""
    rows = spark.read.parquet(request["data"])
    writer = rows.write.format("hudi").options(**request["options"])
    writer.mode(request["mode"]).save(request["path"])
    return {}


def hand_over(rows: DataFrame, out: str) -> Request:
    """Leave a data frame as one parquet file in the folder ``out``."""
    rows.coalesce(1).write.parquet(out)
    return {"data": out}


def read(spark: SparkSession, request: Request) -> Request:
    """Snapshot read, the five meta columns included."""
    rows = spark.read.format("hudi").options(**request["options"]).load(request["path"])
    return hand_over(rows, request["out"])


def sql(spark: SparkSession, request: Request) -> Request:
    """Run one statement; its rows come back where it has any columns."""
    rows = spark.sql(request["text"])
    return hand_over(rows, request["out"]) if rows.columns else {}


def properties(spark: SparkSession, request: Request) -> Request:
    """Table properties as Hudi itself loads them: checksum validated, defaults left out."""
    jvm: Any = spark._jvm
    conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(
        spark.sparkContext._jsc.hadoopConfiguration()
    )
    builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
    client = builder.setConf(conf).setBasePath(request["path"]).build()
    return {"properties": dict(client.getTableConfig().propsMap())}


def num_buckets(spark: SparkSession, request: Request) -> Request:
    """Buckets of each of ``paths`` by the rules ``expressions``."""
    jvm: Any = spark._jvm
    rules = jvm.org.apache.hudi.index.bucket.partition.NumBucketsFunction(
        request["expressions"], "regex", request["default"]
    )
    return {"counts": [rules.getNumBuckets(path) for path in request["paths"]]}


def option_names(spark: SparkSession, request: Request) -> Request:
    """Names of all options that classes of Hudi's jar declare, those of before among them."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    option = "org.apache.hudi.common.config.ConfigProperty"
    with zipfile.ZipFile(request["jar"]) as jar:
        paths = [name for name in jar.namelist() if name.startswith("org/apache/hudi/")]
    names: set[str] = set()
    for path in paths:
        if not path.endswith(".class") or not ("Config" in path or "Options" in path):
            continue
        try:
            found = jvm.java.lang.Class.forName(path[:-6].replace("/", "."), True, loader)
            fields = [f for f in found.getDeclaredFields() if f.getType().getName() == option]
            # Options of Scala objects are fields of the one instance.
            holder = found.getField("MODULE$").get(None) if path.endswith("$.class") else None
        except Py4JJavaError:  # of an engine that is not here
            continue
        is_static = jvm.java.lang.reflect.Modifier.isStatic
        for field in fields:
            if holder is None and not is_static(field.getModifiers()):
                continue
            field.setAccessible(True)
            declared = field.get(holder)
            if declared is not None:  # of several of a cycle of classes, null for now
                names.update([declared.key(), *declared.getAlternatives()])
    return {"names": sorted(names)}


def roll_back(spark: SparkSession, request: Request) -> Request:
    """Roll an instant back as the write client does; the procedure for it takes no version 6."""
    jvm: Any = spark._jvm
    for key, value in request["options"].items():
        spark.conf.set(key, value)
    empty = getattr(jvm, "scala.collection.immutable.Map$").__getattr__("MODULE$").empty()
    client = jvm.org.apache.hudi.HoodieCLIUtils.createHoodieWriteClient(
        spark._jsparkSession, request["path"], empty, jvm.scala.Option.apply(None)
    )
    try:
        client.getConfig().setValue("hoodie.rollback.using.markers", "false")
        return {"done": bool(client.rollback(request["time"]))}
    finally:
        client.close()
        for key in request["options"]:
            spark.conf.unset(key)


def read_hfile(spark: SparkSession, request: Request) -> Request:
    """Entries of the HFile at ``path``, in hexadecimal, and where its reader finds ``keys``."""
    jvm: Any = spark._jvm
    package = jvm.org.apache.hudi.io.hfile
    with open(request["path"], "rb") as file:
        data = file.read()
    stream = jvm.org.apache.hudi.io.ByteBufferBackedInputStream(data)
    source = jvm.org.apache.hudi.io.ByteArraySeekableDataInputStream(stream)
    reader = package.HFileReaderImpl(source, len(data))
    reader.initializeMetadata()
    entries = []
    there = reader.seekTo()
    while there:
        entry = reader.getKeyValue().get()
        block, at, size = entry.getBytes(), entry.getValueOffset(), entry.getValueLength()
        key_at, key_size = entry.getKeyContentOffset(), entry.getKeyContentLength()
        key = bytes(block[key_at : key_at + key_size])
        entries.append([key.hex(), bytes(block[at : at + size]).hex()])
        there = reader.next()
    assert len(entries) == reader.getNumKeyValueEntries()
    reader.seekTo()
    found = [reader.seekTo(package.UTF8StringKey(key)) == 0 for key in request["keys"]]
    return {"entries": entries, "found": found}


def write_hfile(spark: SparkSession, request: Request) -> Request:
    """Write ``entries`` to ``path``, with Hudi's writer."""
    jvm: Any = spark._jvm
    builder = jvm.org.apache.hudi.io.hfile.HFileContext.builder()
    codec = jvm.org.apache.hudi.io.compress.CompressionCodec.valueOf(request["codec"])
    builder = builder.blockSize(request["block_bytes"]).compressionCodec(codec)
    context = builder.fileCreationTime(request["created_ms"]).build()
    sink = jvm.java.io.FileOutputStream(request["path"])
    writer = jvm.org.apache.hudi.io.hfile.HFileWriterImpl(context, sink)
    for key, value in request["entries"]:
        writer.append(key, bytes.fromhex(value))
    for name, value in request["metas"].items():
        writer.appendMetaInfo(name, value.encode())
    for name, value in request["info"].items():
        writer.appendFileInfo(name, value.encode())
    writer.close()
    return {}


def lock_file(spark: SparkSession, request: Request) -> Request:
    """The lock file ``text`` as Hudi reads it, and as it writes what it has read."""
    jvm: Any = spark._jvm
    package = jvm.org.apache.hudi.client.transaction.lock.models
    stream = jvm.java.io.ByteArrayInputStream(request["text"].encode())
    found = package.StorageLockFile.createFromStream(stream, "version")
    values = found.isExpired(), found.getValidUntilMs(), found.getOwner()
    written = package.StorageLockFile.toByteArray(package.StorageLockData(*values))
    return {"values": values, "text": bytes(written).decode()}


@dataclass(frozen=True)
class _Requests:
    """How a kind of object store is asked to put an object on a condition."""

    is_absent: tuple[str, str]
    is_same: str
    version: str
    refused: tuple[int, ...]
    headers: dict[str, str]


_STORES = {
    "S3Server": _Requests(
        ("If-None-Match", "*"), "If-Match", "ETag", (412,), {"Authorization": "AWS x:unchecked"}
    ),
    "GoogleServer": _Requests(
        ("x-goog-if-generation-match", "0"),
        "x-goog-if-generation-match",
        "x-goog-generation",
        (412,),
        {},
    ),
    "AzureServer": _Requests(
        ("If-None-Match", "*"),
        "If-Match",
        "ETag",
        (409, 412),  # the first for an object that is there and should not be
        {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2020-12-06"},
    ),
}


class _Stored:
    """What a lock of Hudi's asks of an object, over plain requests of its store.

    Hudi's own clients are in jars that are not here; the lock itself is in the bundle.
    """

    class Java:
        implements = ("org.apache.hudi.client.transaction.lock.StorageLockClient",)

    def __init__(self, jvm: Any, table: str, store: str) -> None:
        self._jvm = jvm
        self._models = jvm.org.apache.hudi.client.transaction.lock.models
        url = urlsplit(table)
        self._server = url.netloc
        self._target = f"{url.path}/.hoodie/.locks/table_lock.json?{url.query}".rstrip("?")
        self._requests = _STORES[store]

    def readCurrentLockFile(self) -> Any:  # noqa: N802
        """Return the file with its version."""
        status, tag, body = self._ask("GET", {})
        if status == 404:
            return self._pair(self._models.LockGetResult.NOT_EXISTS, None)
        assert status == 200, status
        stream = self._jvm.java.io.ByteArrayInputStream(body)
        found = self._models.StorageLockFile.createFromStream(stream, tag)
        return self._pair(self._models.LockGetResult.SUCCESS, found)

    def tryUpsertLockFile(self, data: Any, previous: Any) -> Any:  # noqa: N802
        """Create the file, or replace the version given."""
        condition = self._requests.is_absent
        if previous.isPresent():
            condition = self._requests.is_same, previous.get().getVersionId()
        body = bytes(self._models.StorageLockFile.toByteArray(data))
        status, tag, _ = self._ask("PUT", dict([condition]), body)
        results = self._models.LockUpsertResult
        if status in self._requests.refused:
            return self._pair(results.ACQUIRED_BY_OTHERS, None)
        assert status in (200, 201), status
        return self._pair(results.SUCCESS, self._models.StorageLockFile(data, tag))

    def readObject(self, path: str, check: bool) -> Any:  # noqa: N802
        """Return nothing: there is no audit."""
        return self._jvm.org.apache.hudi.common.util.Option.empty()

    def writeObject(self, path: str, content: str) -> bool:  # noqa: N802
        """Write no audit."""
        return False

    def close(self) -> None:
        """Hold nothing."""

    def _pair(self, result: Any, file: Any) -> Any:
        common = self._jvm.org.apache.hudi.common.util
        return common.collection.Pair.of(result, common.Option.ofNullable(file))

    def _ask(
        self, method: str, headers: dict[str, str], body: bytes = b""
    ) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection(self._server, timeout=30)
        try:
            connection.request(method, self._target, body, self._requests.headers | headers)
            answer = connection.getresponse()
            version = answer.getheader(self._requests.version) or ""
            return answer.status, version, answer.read()
        finally:
            connection.close()


class _Made:
    """A function of Java that returns what it is made with, or makes it of its arguments."""

    class Java:
        implements = ("org.apache.hudi.common.util.Functions$Function3",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def apply(self, *given: Any) -> Any:
        """Make it."""
        return self._make(*given)


_PROVIDER = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
_locks: dict[str, Any] = {}


def storage_lock(spark: SparkSession, request: Request) -> Request:
    """Take or release Hudi's lock of the table at ``url``, as the writer ``owner``."""
    jvm: Any = spark._jvm
    owner = request["owner"]
    if owner not in _locks:
        ensure_callback_server_started(spark.sparkContext._gateway)
        package = jvm.org.apache.hudi.client.transaction.lock
        client = _Stored(jvm, request["url"], request["store"])
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        found = jvm.java.lang.Class.forName(_PROVIDER, True, loader)
        [made] = [c for c in found.getDeclaredConstructors() if c.getParameterCount() == 6]
        made.setAccessible(True)
        properties = jvm.org.apache.hudi.common.config.TypedProperties()
        properties.setProperty("hoodie.base.path", request["url"].partition("?")[0])
        for key, text in request["options"].items():
            properties.setProperty(key, text)
        given = (
            owner,
            properties,
            _Made(package.models.LockProviderHeartbeatManager),
            _Made(lambda *_: client),
            jvm.org.slf4j.LoggerFactory.getLogger("lock"),
            None,
        )
        arguments = jvm.java.util.ArrayList()
        for one in given:
            arguments.add(one)
        _locks[owner] = made.newInstance(arguments.toArray())
    lock = _locks[owner]
    if request["takes"]:
        return {"taken": lock.tryLock()}
    lock.unlock()
    return {"taken": False}


OPERATIONS: dict[str, Callable[[SparkSession, Request], Request]] = {
    "write": write,
    "read": read,
    "sql": sql,
    "properties": properties,
    "option_names": option_names,
    "num_buckets": num_buckets,
    "roll_back": roll_back,
    "read_hfile": read_hfile,
    "write_hfile": write_hfile,
    "lock_file": lock_file,
    "storage_lock": storage_lock,
}


def java_head(error: Py4JJavaError) -> str:
    """Name the Java exception, its message and the causes under it, without the stack."""
    lines: list[str] = []
    cause = error.java_exception
    while cause is not None and len(lines) < 6:
        lines.append(str(cause.toString())[:500])
        cause = cause.getCause()
    return " <- ".join(lines)


def answer(spark: SparkSession, request: Request) -> Request:
    """Carry out one request; what Spark or Hudi refuses becomes ``error``."""
    try:
        return OPERATIONS[request["operation"]](spark, request)
    except Py4JJavaError as error:
        print(error, file=sys.stderr, flush=True)  # the whole stack, for the log
        return {"error": java_head(error)}
    except PySparkException as error:
        return {"error": f"{type(error).__name__}: {str(error)[:2000]}"}


def main() -> None:
    """Serve requests until stdin closes."""
    jar, work_folder, settings = sys.argv[1:]
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = session(jar, work_folder, json.loads(settings))
    print(json.dumps({"ready": spark.version}), file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(spark, json.loads(line))), file=replies, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()

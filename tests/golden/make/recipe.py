"""What every recipe needs: rows, options, and a table that Hudi on the JVM writes and asks."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.golden.golden_tables import CDC_QUERY, INCREMENTAL_QUERY, READ_OPTIMIZED_QUERY, notation
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError

WRITE = "hoodie.datasource.write."
READ = "hoodie.datasource.read."
VERSION = "hoodie.write.table.version"
KEYGEN = "org.apache.hudi.keygen."

COW = {f"{WRITE}table.type": "COPY_ON_WRITE"}
MOR = {f"{WRITE}table.type": "MERGE_ON_READ"}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
PARQUET_BLOCKS = {
    "hoodie.logfile.data.block.format": "parquet",
    # Without it Hudi writes Avro blocks whatever the block format says.
    "hoodie.write.record.merge.custom.implementation.classes": (
        "org.apache.hudi.DefaultSparkRecordMerger"
    ),
}
COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
SCHEDULE_COMPACTION = {
    "hoodie.compact.schedule.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
}
CLUSTER = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
SCHEDULE_CLUSTERING = {
    "hoodie.clustering.schedule.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clustering.async.max.commits": "1",
}
CLEAN = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
ARCHIVE = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    **CLEAN,
}
DIE_BEFORE_COMMIT = {
    "hoodie.precommit.validators": (
        "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator"
    ),
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
"""A validation that never holds: the writer dies with its files written and its instant open."""

_ALWAYS = {
    f"{WRITE}recordkey.field": "id",
    f"{WRITE}precombine.field": "ts",
    f"{WRITE}hive_style_partitioning": "true",
    "hoodie.metadata.enable": "false",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    # A table service runs where a recipe says so.
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    # Small bloom filters and few tasks: small files, in a short time.
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.bloom.index.filter.dynamic.max.entries": "100",
    "hoodie.bloom.index.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
}


OF_PROCEDURES = (
    VERSION,
    "hoodie.write.auto.upgrade",
    "hoodie.metadata.enable",
    "hoodie.embed.timeline.server",
    "hoodie.write.markers.type",
)
"""Options that a procedure takes from its session; without them it upgrades the table."""
OF_SESSIONS = (*OF_PROCEDURES, "hoodie.compact.inline")
"""Those, and what else a statement of SQL is to do or not."""

_ROWS = {"id": pa.string(), "city": pa.string(), "name": pa.string(), "qty": pa.int32()}


def always() -> dict[str, str]:
    """Options of every write that say nothing of its table."""
    of_tables = [f"{WRITE}{name}" for name in ("recordkey.field", "precombine.field")]
    of_tables.append(f"{WRITE}hive_style_partitioning")
    return {key: text for key, text in _ALWAYS.items() if key not in of_tables}


def rows(numbers: Iterable[int], revision: int, ts: int | None = None) -> pa.Table:
    """Rows ``id, city, name, qty, ts``: each of a number and a revision alone.

    Parameters
    ----------
    numbers : iterable of int
        One row for each; an odd one is in ``ams``, an even one in ``nyc``.
    revision : int
        Which of a key's rows it is.
    ts : int, optional
        The ordering value; ten times the revision by default.
    """
    found = [
        {
            "id": f"k{number:02d}",
            "city": "ams" if number % 2 else "nyc",
            "name": None if (number + revision) % 7 == 0 else f"name {number} r{revision}",
            "qty": number * 100 + revision,
            "ts": revision * 10 if ts is None else ts,
        }
        for number in numbers
    ]
    return pa.Table.from_pylist(found, schema=pa.schema({**_ROWS, "ts": pa.int64()}))


@dataclass
class Recipe:
    """A golden table in the making.

    Parameters
    ----------
    oracle : JvmHudi
        Writes the table and answers queries.
    name : str
        Name of the table and of its files; begins with ``v6_``, ``v8_`` or ``v9_``.
    folder : Path
        Where the tables are made.
    target : Path
        Where its files go.
    about : str
        What the table shows.
    partition : str
        The partition path's fields; nothing for a table without partitions.
    options : dict
        Options of every write, filled from the above.
    queries : list of dict
        Queries with their answers, until they are stored.
    stored : list of str
        Names of the states that were stored.
    """

    oracle: JvmHudi
    name: str
    folder: Path
    target: Path
    about: str
    partition: str
    options: dict[str, str] = field(default_factory=dict)
    queries: list[dict[str, Any]] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.options = {
            **_ALWAYS,
            "hoodie.table.name": self.name,
            VERSION: self.name[1],
            f"{WRITE}partitionpath.field": self.partition,
        }
        if not self.partition:
            self.options[f"{WRITE}keygenerator.class"] = f"{KEYGEN}NonpartitionedKeyGenerator"

    @property
    def path(self) -> Path:
        """Base path of the table."""
        return self.folder / self.name

    @property
    def timeline(self) -> Path:
        """Folder of the active timeline."""
        return self.path / (".hoodie" if self.options[VERSION] == "6" else ".hoodie/timeline")

    def completed(self) -> list[str]:
        """Names of the completed instants' files, oldest first."""
        names = sorted(p.name for p in self.timeline.iterdir() if p.name[:1].isdigit())
        return [name for name in names if name.count(".") == 1]

    def commits(self) -> list[str]:
        """Requested times of the completed commits of any kind, oldest first."""
        return [n.partition(".")[0].partition("_")[0] for n in self.completed() if "commit" in n]

    def ends(self) -> list[str]:
        """Times by which incremental queries count: completion times from version 8 on."""
        names = [name for name in self.completed() if "commit" in name]
        return sorted(name.partition(".")[0].rpartition("_")[2] for name in names)

    def write(
        self, data: pa.Table, operation: str = "upsert", more: Mapping[str, str] | None = None
    ) -> None:
        """Write rows; ``more`` are options of this write alone."""
        given = {**self.options, **(more or {}), f"{WRITE}operation": operation}
        self.oracle.write(self.path, data, given)

    def upsert(
        self,
        numbers: Iterable[int],
        revision: int,
        more: Mapping[str, str] | None = None,
        ts: int | None = None,
    ) -> None:
        """Upsert `rows`."""
        self.write(rows(numbers, revision, ts), "upsert", more)

    def insert(
        self, numbers: Iterable[int], revision: int, more: Mapping[str, str] | None = None
    ) -> None:
        """Insert `rows`."""
        self.write(rows(numbers, revision), "insert", more)

    def delete(self, numbers: Iterable[int], revision: int, ts: int | None = None) -> None:
        """Delete the keys of `rows`."""
        self.write(rows(numbers, revision, ts), "delete")

    def fail(self, numbers: Iterable[int], revision: int) -> None:
        """Upsert rows with a writer that dies before it commits."""
        with dying():
            self.upsert(numbers, revision, DIE_BEFORE_COMMIT)

    def call(self, procedure: str, **arguments: str | int) -> None:
        """Call a procedure of Hudi's SQL on the table."""
        given = {"table": self.name, **arguments}
        text = ", ".join(
            f"{key} => '{value}'" if isinstance(value, str) else f"{key} => {value}"
            for key, value in given.items()
        )
        self.sql(f"call {procedure}({text})")

    def sql(self, *statements: str) -> None:
        """Run statements in which the table has its own name."""
        for key in OF_SESSIONS:
            self.oracle.sql(f"set {key}={self.options[key]}")
        self.oracle.sql(f"create table {self.name} using hudi location '{self.path}'")
        try:
            for statement in statements:
                self.oracle.sql(statement)
        finally:
            self.oracle.sql(f"drop table {self.name}")
            for key in OF_SESSIONS:
                self.oracle.sql(f"reset {key}")

    def roll_back(self, time: str) -> None:
        """Roll a completed write back."""
        assert self.oracle.roll_back(self.path, time)

    def ask(self, options: Mapping[str, str]) -> None:
        """Ask a query, and keep it with its answer or with what it failed with."""
        answer: dict[str, Any] = {"options": dict(options)}
        try:
            found = notation(self.oracle.read(self.path, options).to_pylist())
            answer["rows"] = sorted(found, key=lambda row: json.dumps(row, sort_keys=True))
        except JvmHudiError as error:
            answer["error"] = str(error).rpartition(" <- ")[2].replace(str(self.folder), "")[:300]
        self.queries.append(answer)

    def ask_snapshots(self) -> None:
        """Ask for the latest snapshot, and of a merge-on-read table the read-optimised one."""
        self.ask({})
        if self.options[f"{WRITE}table.type"] == "MERGE_ON_READ":
            self.ask(READ_OPTIMIZED_QUERY)

    def ask_history(self) -> None:
        """Ask for the table at each commit, for what came after it, and for what came by it."""
        self.ask_snapshots()
        for time in self.commits():
            self.ask({"as.of.instant": time})
        self._ask_ranges(INCREMENTAL_QUERY)

    def ask_changes(self) -> None:
        """Ask for the changes of each commit, and of all of them."""
        self._ask_ranges(CDC_QUERY)

    def _ask_ranges(self, query: Mapping[str, str]) -> None:
        ends = self.ends()
        begin, end = f"{READ}begin.instanttime", f"{READ}end.instanttime"
        self.ask({**query, begin: "000"})
        self.ask({**query, begin: ends[1], end: ends[-2]})
        for first, last in zip(["000", *ends], ends, strict=False):
            self.ask({**query, begin: first, end: last})

    def store(self, state: str = "") -> None:
        """Zip the table as it is now, and keep the answers that it gave beside it."""
        name = f"{self.name}_{state}" if state else self.name
        zip_table(self.path, self.target / f"{name}.zip")
        content = {"about": self.about, "queries": self.queries}
        text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        file = self.target / f"{name}.json.gz"
        file.write_bytes(gzip.compress(text.encode(), mtime=0))
        self.queries = []
        self.stored.append(name)


@contextmanager
def dying() -> Iterator[None]:
    """Expect Hudi to refuse what is done."""
    try:
        yield
    except JvmHudiError:
        return
    raise AssertionError("Hudi was to die here")


@contextmanager
def missing(paths: Sequence[Path]) -> Iterator[None]:
    """Take files away for a while, for a reader of them to die."""
    for path in paths:
        path.rename(path.with_name(path.name + ".away"))
    try:
        yield
    finally:
        for path in paths:
            path.with_name(path.name + ".away").rename(path)


def zip_table(path: Path, archive: Path) -> None:
    """Zip a table without the checksum files that Hadoop keeps, all files with one time."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for file in sorted(path.rglob("*")):
            if file.is_file() and file.suffix != ".crc":
                info = zipfile.ZipInfo(str(file.relative_to(path)))
                info.compress_type = zipfile.ZIP_DEFLATED
                target.writestr(info, file.read_bytes())


@dataclass(frozen=True)
class Golden:
    """How one golden table, or several states of it, are made.

    Parameters
    ----------
    name : str
        Name of the table, with the version first; its states' names begin with it.
    about : str
        What it shows.
    options : dict
        Options of every write.
    partition : str
        The partition path's fields; nothing for a table without partitions.
    steps : callable
        Writes the table, asks it, and stores it.
    """

    name: str
    about: str
    options: dict[str, str]
    partition: str
    steps: Callable[[Recipe], None]

    def make(self, oracle: JvmHudi, folder: Path, target: Path) -> list[str]:
        """Make the table in a folder, store it in another; return the names of what was stored."""
        recipe = Recipe(oracle, self.name, folder, target, self.about, self.partition)
        recipe.options |= self.options
        self.steps(recipe)
        return recipe.stored


GOLDENS: dict[str, Golden] = {}
"""All golden tables by name; the modules of recipes fill it."""


def golden(
    name: str, *options: Mapping[str, str], versions: str = "6", partition: str = "city"
) -> Callable[[Callable[[Recipe], None]], Callable[[Recipe], None]]:
    """Make a function the recipe of a table, whose docstring says what the table shows."""
    merged = {key: value for part in options for key, value in part.items()}

    def register(steps: Callable[[Recipe], None]) -> Callable[[Recipe], None]:
        about = " ".join((steps.__doc__ or "").split())
        for version in versions:
            full = f"v{version}_{name}"
            GOLDENS[full] = Golden(full, about, merged, partition, steps)
        return steps

    return register

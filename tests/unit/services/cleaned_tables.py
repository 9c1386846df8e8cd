"""Tables of a few files without content, by what commits say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.services.clean_planner import plan_clean
from hoodie_ds.table.table import Table
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, LogWrite, WriteStat
from hoodie_ds.timeline.bodies.savepoint_metadata import savepoint_to_bytes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path
from tests.unit.transaction.failed_tables import data_files, new_table

BY_COMMITS = CleaningPolicy.KEEP_LATEST_COMMITS
BY_HOURS = CleaningPolicy.KEEP_LATEST_BY_HOURS
BY_VERSIONS = CleaningPolicy.KEEP_LATEST_FILE_VERSIONS
NEXT = "20250201000000000"


def day(number: int) -> str:
    """Instant time of a day of January 2025."""
    return f"202501{number:02d}000000000"


def base(number: int, group: str = "a", partition: str = "p", token: str = "0-1-1") -> str:
    """Path of the base file that a day's commit has written."""
    return f"{partition}/{group}_{token}_{day(number)}.parquet"


def log(start: int, version: int = 1, group: str = "a", partition: str = "p") -> str:
    """Path of a log file of the slice that begins on a day."""
    return f"{partition}/.{group}_{day(start)}.log.{version}_0-1-1"


def _stat(path: str, first: bool) -> WriteStat:
    partition, _, name = path.rpartition("/")
    file_id = name.removeprefix(".").split("_")[0]
    previous = "null" if first else day(1)
    if name.startswith("."):
        return WriteStat(file_id, path, partition, previous, log=LogWrite(1, 0, "", (name,)))
    return WriteStat(file_id, path, partition, previous)


@dataclass
class Cleaned:
    """A table in memory; its methods return it."""

    storage: MemoryStorage = field(default_factory=MemoryStorage)
    table: Table = field(init=False)

    def __post_init__(self) -> None:
        self.table = new_table(self.storage)

    def commit(
        self,
        number: int,
        *paths: str,
        first: bool = False,
        action: Action = Action.COMMIT,
        compacted: bool = False,
        replaced: Mapping[str, Sequence[str]] | None = None,
    ) -> Cleaned:
        """Add a day's commit with its files; `first` where its file groups are new."""
        stats = tuple(_stat(path, first) for path in paths)
        ids = {partition: tuple(found) for partition, found in (replaced or {}).items()}
        body = CommitMetadata(stats, "UPSERT", {}, ids, compacted).to_bytes(1)
        self.put(number, action, State.COMPLETED, body)
        for path in paths:
            if path not in self.storage.files:
                self.storage.put_if_absent(path, b"")
        return self

    def put(
        self, number: int, action: Action, state: State = State.REQUESTED, body: bytes = b""
    ) -> Cleaned:
        """Add the file of an instant's state."""
        self.storage.put_if_absent(instant_path(Instant(day(number), action, state)), body)
        return self

    def save(self, number: int, *paths: str) -> Cleaned:
        """Add a savepoint of a day that keeps some files."""
        names = [path.rpartition("/")[2] for path in paths]
        body = savepoint_to_bytes({"p": names}, "user", 0, "")
        return self.put(number, Action.SAVEPOINT, State.COMPLETED, body)

    def plan(
        self,
        kept: int = 1,
        policy: CleaningPolicy = BY_COMMITS,
        now_ms: int = 0,
    ) -> CleanerPlan | None:
        """Plan a clean that keeps so many commits, hours or versions."""
        options = CleaningOptions(policy=policy, commits=kept, hours=kept, versions=kept)
        return plan_clean(self.table, load_timeline(self.storage, 1), options, now_ms)

    def going(
        self, kept: int = 1, policy: CleaningPolicy = BY_COMMITS, now_ms: int = 0
    ) -> set[str]:
        """Paths of the files that such a clean deletes."""
        plan = self.plan(kept, policy, now_ms)
        return set() if plan is None else set(plan.paths)

    def clean(self, number: int, kept: int = 1, policy: CleaningPolicy = BY_COMMITS) -> Cleaned:
        """Execute such a clean, as of a day."""
        plan = self.plan(kept, policy)
        assert plan is not None
        for path in plan.paths:
            self.storage.delete(path)
        self.put(number, Action.CLEAN, body=plan.to_bytes("/t"))
        return self.put(number, Action.CLEAN, State.COMPLETED, plan.done(day(number), 0))

    @property
    def left(self) -> set[str]:
        """Paths of the data files."""
        return set(data_files(self.storage))

"""A stream in all its states with a Delta log beside its table, and deltalake as its reader."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis.stateful import precondition, rule

from hoodie_ds import HoodieTable
from tests.delta import READ_OPTIMISED, SYNC, delta
from tests.faults.scenarios import COW, MOR, VERSIONS
from tests.faults.stream import plain
from tests.property.test_stateful import EXAMPLES, NIGHTLY, STEPS, Stream, explored

pytestmark = pytest.mark.usefixtures("one_thread")

OPTIONS = {
    **SYNC,
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "6",
    "hoodie.keep.max.commits": "7",
}


class DeltaStream(Stream):
    """The stream, and what its Delta log shows after every step."""

    options: ClassVar[dict[str, str]]

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[Any] = []

    @precondition(lambda self: any(self.table.files))
    @rule()
    def services(self) -> None:
        """What is due of compaction and cleaning, by hand."""
        if HoodieTable(self.table.root, storage=self.table).timeline.commits:
            table = HoodieTable(self.table.root, self.options, storage=self.table)
            if "MERGE_ON_READ" in self.options.values():
                table.compact()
            table.clean()
            self.states = self.decided()
            self.look()

    @precondition(lambda self: any(self.table.files))
    @rule()
    def repair(self) -> None:
        """A sync by hand leaves nothing to do."""
        table = HoodieTable(self.table.root, storage=self.table)
        table.sync_delta()
        assert not table.sync_delta(dry=True)
        self.look()

    def look(self) -> None:
        super().look()
        if not any(path.startswith("_delta_log/") for path in self.table.files):
            return
        table = HoodieTable(self.table.root, READ_OPTIMISED, storage=self.table)
        ours = plain(table.read().to_pylist())
        with tempfile.TemporaryDirectory() as folder:
            for path, body in self.table.files.items():
                if not path.startswith(".hoodie/"):
                    (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                    (Path(folder) / path).write_bytes(body)
            opened = delta(Path(folder))
            seen = plain(opened.to_pyarrow_table().to_pylist())
            newest = opened.history(1)[0]["hudiInstant"]
        if newest == next((i.time for i in table.timeline.commits[::-1]), ""):
            assert seen == ours, "the log says that it is up to date"
        assert seen in (ours, *self.shown), json.dumps([seen, ours], default=str)
        self.shown = [*self.shown[-20:], ours]


@pytest.mark.parametrize(("kind", "version"), [(COW, "9"), (MOR, "6")], ids=["cow, 9", "mor"])
def test_a_delta_log_in_a_few_states(kind: dict[str, str], version: str) -> None:
    explored({**kind, **OPTIONS}, "BUCKET", 2, 15, version=version, machine=DeltaStream)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [(COW, "6"), (MOR, "9")], ids=["cow", "mor, 9"])
def test_a_delta_log_in_many_states(kind: dict[str, str], version: str) -> None:
    given = {**kind, **OPTIONS}
    explored(given, "BLOOM", EXAMPLES // 3, STEPS, version=version, machine=DeltaStream)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", ["BUCKET", "BLOOM"])
@pytest.mark.parametrize("kind", [COW, MOR], ids=["cow", "mor"])
def test_a_delta_log_in_more_states(kind: dict[str, str], index: str, version: str) -> None:
    counted = "stateful examples, nightly"
    given = {**kind, **OPTIONS}
    explored(
        given, index, NIGHTLY // 10, STEPS, version=version, machine=DeltaStream, counted=counted
    )

from __future__ import annotations

import pytest

from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import V1

T = "20260307135827749"

# Names as Hudi writes them in timeline layout 1.
NAMES = {
    f"{T}.commit.requested": (Action.COMMIT, State.REQUESTED),
    f"{T}.inflight": (Action.COMMIT, State.INFLIGHT),
    f"{T}.commit": (Action.COMMIT, State.COMPLETED),
    f"{T}.deltacommit.requested": (Action.DELTA_COMMIT, State.REQUESTED),
    f"{T}.deltacommit.inflight": (Action.DELTA_COMMIT, State.INFLIGHT),
    f"{T}.deltacommit": (Action.DELTA_COMMIT, State.COMPLETED),
    f"{T}.replacecommit": (Action.REPLACE_COMMIT, State.COMPLETED),
    f"{T}.compaction.requested": (Action.COMPACTION, State.REQUESTED),
    f"{T}.compaction.inflight": (Action.COMPACTION, State.INFLIGHT),
    f"{T}.clean": (Action.CLEAN, State.COMPLETED),
    f"{T}.rollback.requested": (Action.ROLLBACK, State.REQUESTED),
    f"{T}.savepoint": (Action.SAVEPOINT, State.COMPLETED),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_read_and_written(name: str) -> None:
    instant = V1.parse(name)
    assert instant == Instant(T, *NAMES[name])
    assert V1.file_name(instant) == name


def test_a_compaction_completes_as_a_commit() -> None:
    assert V1.file_name(Instant(T, Action.COMPACTION, State.COMPLETED)) == f"{T}.commit"
    assert V1.file_name(Instant(T, Action.LOG_COMPACTION, State.COMPLETED)) == f"{T}.deltacommit"


def test_an_action_of_a_metadata_table_has_a_suffix_after_its_time() -> None:
    time = "20261122053937944"
    own = Instant(f"{time}001", Action.COMMIT, State.COMPLETED)
    assert V1.parse(f"{time}001.commit") == own
    assert padded(time) < padded(own.time) < padded("20261122053937945")


def test_a_time_of_an_old_table_has_no_milliseconds() -> None:
    assert V1.parse("20190101000000.commit") == Instant(
        "20190101000000", Action.COMMIT, State.COMPLETED
    )


@pytest.mark.parametrize(
    "name",
    ["hoodie.properties", f"{T}.commit.crc", f".{T}.commit.crc", f"{T}.other", f"{T[:-1]}.commit"],
)
def test_other_files_of_the_folder_are_no_instants(name: str) -> None:
    assert V1.parse(name) is None

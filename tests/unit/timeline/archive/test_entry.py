"""Entries of the archive: the same bytes as Apache Hudi made of the same files."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import write_record
from hoodie_ds.formats.avro.decoder import DatumReader
from hoodie_ds.formats.avro.tree import parse_avro
from hoodie_ds.timeline.archive.entry import ArchivedEntry, entry_of, entry_schema, parse_entry
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, LogWrite, WriteStat
from hoodie_ds.timeline.bodies.compaction_plan import CompactionPlan
from hoodie_ds.timeline.bodies.rollback_metadata import metadata_to_bytes, plan_to_bytes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import V1
from tests.golden.golden_tables import FOLDER

_TIME = "20260101000000000"


def _golden() -> list[dict[str, Any]]:
    """Files of a timeline by Hudi 1.2, and the entries that it made of them later."""
    path = Path(FOLDER).with_name("archived_entries.json.gz")
    found: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def _fields(data: bytes) -> dict[str, Any]:
    record: dict[str, Any] = DatumReader(parse_avro(entry_schema(), "e"), "e", plain=True).read(
        data
    )
    return record


def _bodies() -> dict[str, bytes]:
    return {pair["file"]: b64decode(pair["body"]) for pair in _golden()}


@pytest.mark.parametrize("pair", _golden(), ids=lambda pair: pair["file"])
def test_entries_are_byte_for_byte_those_of_hudi(pair: dict[str, Any]) -> None:
    theirs = b64decode(pair["entry"])
    step = V1.parse(pair["file"].rpartition("/")[2])
    assert step is not None
    requested = V1.file_name(step.at(State.REQUESTED))
    plan = _bodies()[f".hoodie/{requested}"]
    transition = _fields(theirs)["stateTransitionTime"]
    assert entry_of(step, b64decode(pair["body"]), plan, transition).to_bytes() == theirs


@pytest.mark.parametrize("pair", _golden(), ids=lambda pair: pair["file"])
def test_entries_of_hudi_are_read_back(pair: dict[str, Any]) -> None:
    theirs = b64decode(pair["entry"])
    entry = parse_entry(_fields(theirs), "e")
    assert entry.instant == V1.parse(pair["file"].rpartition("/")[2])
    assert entry.to_bytes() == theirs


def test_a_commit_says_the_same_from_the_archive() -> None:
    log = LogWrite(3, 17, "base.parquet", (".a.log.1", ".a.log.2"))
    stat = WriteStat("f", "p/.a.log.3", "p", num_writes=5, num_update_writes=4, log=log)
    extra = {"schema": "{}", "_hoodie_ds_checksums": '{"p/.a.log.3": "12"}'}
    for action, replaced in ((Action.DELTA_COMMIT, {}), (Action.REPLACE_COMMIT, {"q": ("g",)})):
        commit = CommitMetadata((stat,), "UPSERT", extra, replaced)
        step = Instant(_TIME, action, State.COMPLETED)
        data = entry_of(step, commit.to_bytes(1), b"", _TIME).to_bytes()
        assert parse_entry(_fields(data), "e").commit("p") == commit


def test_a_rollback_says_what_it_did_once_it_is_complete() -> None:
    undone = Instant("20250101000000000", Action.COMMIT, State.INFLIGHT)
    bodies = {
        State.REQUESTED: plan_to_bytes("/t", undone, {}),
        State.INFLIGHT: b"",
        State.COMPLETED: metadata_to_bytes("/t", _TIME, undone, {}, 3),
    }
    said = {}
    for state, body in bodies.items():
        entry = entry_of(Instant(_TIME, Action.ROLLBACK, state), body, b"", _TIME)
        said[state] = _fields(entry.to_bytes())["hoodieRollbackMetadata"]
    assert said[State.REQUESTED] is said[State.INFLIGHT] is None
    assert said[State.COMPLETED]["commitsRollback"] == [undone.time]


def test_a_compaction_has_its_plan_where_it_was_requested() -> None:
    body = CompactionPlan(()).to_bytes()
    step = Instant(_TIME, Action.COMPACTION, State.REQUESTED)
    assert _fields(entry_of(step, body, body, _TIME).to_bytes())["hoodieCompactionPlan"] is not None
    inflight = entry_of(step.at(State.INFLIGHT), b"", body, _TIME)
    assert _fields(inflight.to_bytes())["hoodieCompactionPlan"] is None


def test_a_damaged_commit_is_not_archived() -> None:
    body = CommitMetadata(operation_type="UPSERT", extra={"schema": "{}"}).to_bytes(1)
    step = Instant(_TIME, Action.COMMIT, State.COMPLETED)
    with pytest.raises(CorruptFileError, match=f"{_TIME}.commit was damaged"):
        entry_of(step, body.replace(b"UPSERT", b"INSERT"), b"", _TIME)


def test_what_hudis_schema_has_no_place_for_names_the_file() -> None:
    strange = {"type": "record", "name": "R", "fields": [{"name": "startCleanTime", "type": "int"}]}
    body = write_record(strange, {"startCleanTime": 7})
    entry = entry_of(Instant(_TIME, Action.CLEAN, State.COMPLETED), body, b"", _TIME)
    with pytest.raises(CorruptFileError, match=f"{_TIME}.clean"):
        entry.to_bytes()


def test_an_entry_that_does_not_say_what_a_commit_did_is_no_commit() -> None:
    entry = ArchivedEntry(Instant(_TIME, Action.COMMIT, State.COMPLETED))
    with pytest.raises(CorruptFileError, match="the/path is in the archive without what it did"):
        entry.commit("the/path")


@pytest.mark.parametrize(
    "record", [{}, {"commitTime": "1", "actionType": "x"}, {"commitTime": "1", "actionState": "x"}]
)
def test_an_entry_without_an_instant_names_the_file(record: dict[str, Any]) -> None:
    with pytest.raises(CorruptFileError, match="the/file: an entry of the archive names no"):
        parse_entry(record, "the/file")


def test_old_entries_without_a_state_are_of_completed_instants() -> None:
    entry = parse_entry({"commitTime": _TIME, "actionType": "commit"}, "f")
    assert entry.instant == Instant(_TIME, Action.COMMIT, State.COMPLETED)

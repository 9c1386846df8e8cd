"""Which pending instant takes the next micro-batch too."""

from __future__ import annotations

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import manifest_path
from hoodie_ds.transaction.manifest import find_joinable
from tests.unit.transaction.failed_tables import (
    DONE,
    FAILED,
    NEW_BASE,
    begin,
    commit,
    commit_body,
    new_table,
)

_BEFORE = "20250101120000000"


def test_a_pending_instant_of_others_takes_no_batch(storage: Storage) -> None:
    table = new_table(storage)
    commit(table, DONE)
    for time, action in [(_BEFORE, Action.COMPACTION), (FAILED, Action.COMMIT)]:
        begin(table, time, action, ours=False)
        storage.put_if_absent(manifest_path(time), commit_body(NEW_BASE))
    assert find_joinable(table, load_timeline(storage, 1), Action.COMMIT, 3) is None


def test_an_instant_takes_batches_until_it_is_full(storage: Storage) -> None:
    table = new_table(storage)
    begin(table, FAILED)
    timeline = load_timeline(storage, 1)
    assert find_joinable(table, timeline, Action.COMMIT, 2) is None  # the first never finished
    storage.put_if_absent(manifest_path(FAILED), commit_body(NEW_BASE))
    open_ = Instant(FAILED, Action.COMMIT, State.INFLIGHT, 1)
    assert find_joinable(table, timeline, Action.COMMIT, 2) == open_
    assert find_joinable(table, timeline, Action.REPLACE_COMMIT, 2) is None
    storage.put_if_absent(manifest_path(FAILED, 2), commit_body(NEW_BASE))
    assert find_joinable(table, timeline, Action.COMMIT, 2) is None

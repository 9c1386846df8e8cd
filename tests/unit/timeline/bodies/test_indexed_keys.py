"""What a commit says of the keys that its tasks have put into the record index."""

from __future__ import annotations

import pytest

from hoodie_ds.timeline.bodies.indexed_keys import INDEXED_KEY, IndexedKeys

ONE = IndexedKeys(2, {"record_index/a": (3, 70)}, frozenset({"x/f"}))
OTHER = IndexedKeys(2, {"record_index/b": (1, 50)}, frozenset({"x/g", "y/h"}))


def test_a_commit_says_what_all_tasks_have_put() -> None:
    joined = IndexedKeys.joined([ONE, IndexedKeys(), OTHER])
    assert joined == IndexedKeys(2, {**ONE.logs, **OTHER.logs}, ONE.files | OTHER.files)
    assert IndexedKeys.of(joined.to_extra()) == joined


def test_nothing_is_said_of_nothing_and_of_different_indexes() -> None:
    assert IndexedKeys.joined([]).to_extra() == {}
    assert IndexedKeys.joined([ONE, IndexedKeys(3, OTHER.logs, OTHER.files)]) == IndexedKeys()


@pytest.mark.parametrize("text", ["", "[]", '{"groups": 1}', '{"groups":1,"logs":[],"files":[]}'])
def test_what_cannot_be_read_says_nothing(text: str) -> None:
    assert IndexedKeys.of({INDEXED_KEY: text}) == IndexedKeys()

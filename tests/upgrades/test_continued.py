"""Tables of earlier releases, made by ``make.py``, are continued by this one.

``7d2472d1.zip`` is of that commit, before 0.1.0: it kept the decision log in ``.locks/turns``, and
its own temporary files beside the markers. ``tests/spark/test_continued_streams.py`` has streams.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from hoodie_ds import HoodieTable, Instant
from hoodie_ds.testing import MemoryStorage, check_table
from tests.upgrades.make import DEATHS, RELEASES, VERSIONS, numbered, rows


def fares(table: HoodieTable, as_of: Instant | None = None) -> dict[int, float]:
    """Return the rows by their keys, after a check that no key comes twice."""
    found = table.read(["id", "fare"], as_of=as_of).to_pylist()
    by_key = {row["id"]: row["fare"] for row in found}
    assert len(by_key) == len(found)
    return by_key


def after(number: int) -> dict[int, float]:
    """What numbered writes leave."""
    return {0: float(number)} | {one: float(one) for one in range(1, number + 1)}


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: str(path.stem))
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("death", DEATHS)
def test_a_table_is_continued(release: Path, version: str, death: str) -> None:
    with ZipFile(release) as held:
        files = {
            name.split("/", 2)[2]: held.read(name)
            for name in held.namelist()
            if name.startswith(f"{version}/{death}/")
        }
    storage = MemoryStorage(files=files)
    table = HoodieTable("/t", storage=storage)
    assert fares(table) == after(3)
    assert table.inspect.verify()
    (savepoint,) = table.timeline.savepoints

    assert table.upsert(rows(3), numbered(3)).already_committed
    # the dead writer's batch, which its decision had completed, or not
    assert table.upsert(rows(4), numbered(4)).already_committed is (death == "decided")
    assert not table.upsert(rows(5), numbered(5)).already_committed
    assert fares(table) == after(5)
    assert fares(table, as_of=savepoint) == after(2)
    assert table.compact()
    table.clean({"hoodie.clean.commits.retained": "1"})
    assert fares(table) == after(5)
    assert table.inspect.verify()

    table.restore(savepoint)
    assert fares(table) == after(2)
    assert not table.upsert(rows(3), numbered(3)).already_committed
    assert fares(table) == after(3)
    assert table.inspect.verify()
    assert check_table(storage.files) == []

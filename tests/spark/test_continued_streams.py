"""Streams of earlier releases, with their checkpoints, are continued by this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

import hoodie_ds
from tests.upgrades.make import RELEASES, STREAMS, stream


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("release", RELEASES, ids=lambda path: str(path.stem))
def test_a_stream_is_continued(spark: Any, release: Path, kind: str, tmp_path: Path) -> None:
    hoodie_ds.register(spark)
    with ZipFile(release) as held:
        held.extractall(tmp_path, [name for name in held.namelist() if name.startswith(f"{kind}/")])
    table = hoodie_ds.HoodieTable(tmp_path / kind / "table")
    assert sorted(table.read()["id"].to_pylist()) == list(range(20))
    commits = len(table.timeline.completed)
    stream(spark, tmp_path / kind, kind)  # its second batch again, and a third one
    assert sorted(table.read()["id"].to_pylist()) == list(range(30))
    assert len(table.timeline.completed) == commits + 1
    assert table.inspect.verify()

"""Clusterings of Hudi that split buckets of consistent hashing: only Hudi carries them out.

While one is pending, Hudi writes the rows of a bucket to the new ones, too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import TimelineError
from tests.cli_runs import done, run
from tests.golden.golden_tables import assert_rows_equal, expected_rows, unzip_table
from tests.tables import tree

NAME = "v6_mor_consistent_buckets_splitting"
TIME, WRITE = "20261122114309525", "20261122114309830"
ABOVE = f".2f067470-1450-421b-88c1-def6b04eb98d-0_{TIME}.log.1_1-949-1151"


def test_a_split_that_rows_were_written_on_top_of_stays(tmp_path: Path) -> None:
    path = unzip_table(NAME, tmp_path)
    table, before = HoodieTable(str(path)), tree(path)
    why = re.escape(f"written on top of it ({ABOVE}); let it be executed by Hudi")
    for dry in (True, False):
        with pytest.raises(TimelineError, match=f"{TIME} replacecommit requested cannot .*{why}"):
            table.rollback(TIME, dry=dry)
    assert tree(path) == before
    table.clean()  # recovers as each write does
    assert [pending.time for pending in table.timeline.pending] == [TIME]
    assert_rows_equal(table.read(), expected_rows(NAME))
    ends = f"let Hudi execute it, as rows were written on top of it ({ABOVE})"
    assert ends in done("plan", path).out
    assert ends in run("cluster", path, "--yes").err


def test_a_split_is_given_up_before_rows_are_on_top_of_it(tmp_path: Path) -> None:
    path = unzip_table(NAME, tmp_path)
    for file in [*path.glob(f".hoodie/{WRITE}.*"), *path.glob(f".*_{TIME}.log.*")]:
        file.unlink()
    table = HoodieTable(str(path))
    rows, undo = table.read(), f"`hoodie-py rollback {path} {TIME}`"
    assert f"let Hudi execute it, or give it up with {undo}" in done("plan", path).out
    table.rollback(TIME)
    assert table.timeline.pending == ()
    assert table.read() == rows

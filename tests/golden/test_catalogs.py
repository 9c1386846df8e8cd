"""What our sync tells a metastore of tables of Hudi on the JVM, beside what Hudi's own told one."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

from hoodie_ds import HoodieTable
from tests.fake_metastore import FakeMetastore, in_place_of_thrift
from tests.golden.make.catalogs import DATABASE, TARGET, answers_of

NAMES: Final = sorted(path.stem for path in TARGET.glob("*.zip"))
OURS: Final = "hudi_writer_version"
"""What each writer says of itself."""


def told(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an answer without what the two syncs are to differ in."""
    kept: dict[str, Any] = {}
    for view, found in answer.items():
        properties = {key: text for key, text in found["properties"].items() if key != OURS}
        if name.startswith("v6"):  # it is the time of a file there, and nobody's to know
            properties.pop("last_commit_completion_time_sync", None)
        kept[view] = {**found, "properties": properties}
    return kept


@pytest.mark.parametrize("name", NAMES)
def test_a_metastore_is_told_what_hudi_tells_it(name: str, tmp_path: Path) -> None:
    base, fake = tmp_path / "table", FakeMetastore()
    with zipfile.ZipFile(TARGET / f"{name}.zip") as kept:
        expected = json.loads(kept.read("answers.json"))
        options = {**expected["options"], "hoodie.meta_sync.spark.version": "3.5.8"}
        for number, step in enumerate(expected["steps"]):
            shutil.rmtree(base, ignore_errors=True)
            for entry in kept.namelist():
                if entry.startswith(f"{number}/"):
                    kept.extract(entry, tmp_path)
            (tmp_path / str(number)).rename(base)
            with in_place_of_thrift(fake):
                done = HoodieTable(base).sync_catalog(options)
            assert done
            found = answers_of(fake, f"{DATABASE}_{name}", str(base))
            assert told(found, name) == told(step, name)


def test_every_recipe_is_there() -> None:
    from tests.golden.make.catalogs import RECIPES

    assert sorted(RECIPES) == NAMES

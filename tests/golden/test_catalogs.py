"""What our sync tells a metastore of tables of Hudi on the JVM, beside what Hudi's own told one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from tests.fake_metastore import FakeMetastore, in_place_of_thrift
from tests.golden.kept_catalogs import NAMES, KeptCatalog
from tests.golden.make.catalogs import RECIPES, answers_of


@pytest.mark.parametrize("name", NAMES)
def test_a_metastore_is_told_what_hudi_tells_it(name: str, tmp_path: Path) -> None:
    kept, base, fake = KeptCatalog(name), tmp_path / "table", FakeMetastore()
    for expected in kept.steps(base):
        with in_place_of_thrift(fake):
            assert HoodieTable(base).sync_catalog(kept.options())
        found = answers_of(fake, kept.database, str(base))
        assert kept.comparable(found) == expected


def test_every_recipe_is_there() -> None:
    assert sorted(RECIPES) == NAMES

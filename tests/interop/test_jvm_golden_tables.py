"""The golden tables' answers are those that Apache Hudi on the JVM gives today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.golden_tables import FOLDER
from tests.golden.make import keys_and_types, services
from tests.golden.make.answers import differences
from tests.golden.make.recipe import GOLDENS
from tests.interop.jvm_hudi import JvmHudi

RECIPES = (keys_and_types, services)

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("name", ["v6_cow_url_encoded", "v9_mor_failed"])
def test_hudi_answers_as_stored(jvm_hudi: JvmHudi, tmp_path: Path, name: str) -> None:
    made = tmp_path / "made"
    made.mkdir()
    for state in GOLDENS[name].make(jvm_hudi, tmp_path, made):
        file = f"{state}.json.gz"
        assert differences(FOLDER / file, made / file) == []
        assert (made / f"{state}.zip").stat().st_size

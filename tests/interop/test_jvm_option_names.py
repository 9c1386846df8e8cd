"""The list of Hudi's options, by which ours are judged, against Hudi's own classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.jvm_hudi import JvmHudi

pytestmark = pytest.mark.jvm

_LISTED = Path(__file__).parents[1] / "unit/config/hudi_keys.txt"


@pytest.mark.slow
@pytest.mark.nightly
def test_the_list_of_hudis_options_is_whole(jvm_hudi: JvmHudi) -> None:
    assert jvm_hudi.option_names() == set(_LISTED.read_text().split())

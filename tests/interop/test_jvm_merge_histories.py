"""The stored histories are what Apache Hudi on the JVM answers today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.histories import names, rows_of, steps
from tests.golden.make.merge_histories import batches, differences
from tests.interop.jvm_hudi import JvmHudi


@pytest.mark.parametrize("name", names())
def test_the_batches_are_those_that_the_name_says(name: str) -> None:
    for (operation, rows), step in zip(batches(name), steps(name), strict=True):
        assert operation == step.operation
        # As text: a NaN is no other.
        assert str(rows_of(name, rows).to_pylist()) == str(step.rows.to_pylist())


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.jvm
@pytest.mark.parametrize("name", ["long"])
def test_hudi_answers_as_stored(jvm_hudi: JvmHudi, tmp_path: Path, name: str) -> None:
    assert differences(jvm_hudi, name, tmp_path) == []

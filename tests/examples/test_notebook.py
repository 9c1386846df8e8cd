"""The notebook: it runs, and shows what is stored in it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.documents import PROJECT


def shown(notebook: Any) -> list[str]:
    """What each cell shows, without the times and the folder of this run."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [output.data["text/plain"] for output in outputs]
    return [re.sub(r"\d{17}|/[^'\n]+/rides", "...", text) for text in texts]


@pytest.mark.slow
def test_the_notebook_shows_what_is_stored_in_it() -> None:
    import nbclient  # which few tests need
    import nbformat

    path = PROJECT / "examples" / "notebook.ipynb"
    stored, run = (nbformat.read(path, as_version=4) for _ in range(2))
    nbclient.NotebookClient(run, timeout=120, resources={"metadata": {"path": PROJECT}}).execute()
    assert shown(run) == shown(stored)
    assert len(shown(stored)) == 7
    at_a_glance = run.cells[-2].outputs[0].data["text/html"]
    assert "<td>record_keys</td><td>id</td>" in at_a_glance

"""The jobs of ``.ci/run``, and the hosted workflows that call them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.documents import PROJECT, document

RUN = document(".ci/run")
JOBS = re.findall(r"^jobs='(.*)'$", RUN, re.M)[0].split()
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))


def test_every_job_is_described_and_done() -> None:
    assert re.findall(r"^job_(\w+)\(\)", RUN, re.M) == JOBS
    assert re.findall(r"^#   (\w+) +\S", RUN, re.M) == JOBS


def test_the_longer_jobs_leave_no_test_out() -> None:
    jobs = dict(re.findall(r"^job_(\w+)\(\) \{\s+longer (.*?)\s*;?\s*\}$", RUN, re.M | re.S))
    folders = {name: set(re.findall(r"tests/\w+", given)) for name, given in jobs.items()}
    rest = folders.pop("rest")
    assert len(folders) == 4
    assert sorted(rest) == sorted(folder for found in folders.values() for folder in found)


def test_a_job_that_is_not_there_is_refused() -> None:
    ended = subprocess.run(
        [PROJECT / ".ci" / "run", "lint", "nightly"], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"usage: .ci/run [JOB...], of {' '.join(JOBS)}\n"


def test_hosted_workflows_call_every_job() -> None:
    called: set[str] = set()
    for path in WORKFLOWS:
        text = path.read_text("utf-8")
        assert text.count(".ci/run ${{ matrix.job }}") == 1
        called.update(*(re.split(r", ", jobs) for jobs in re.findall(r" job: \[(.*)\]", text)))
        called.update(re.findall(r"- job: (\w+)", text))
    assert called == set(JOBS)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: str(path.name))
def test_a_hosted_workflow_reads_only_and_pins_what_it_uses(path: Path) -> None:
    text = document(str(path))
    assert re.findall(r"permissions:\n((?:  .*\n)*)", text) == ["  contents: read\n"]
    used = re.findall(r"uses: (.*)", text)
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[0-9.]+", action), action

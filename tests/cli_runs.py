"""Runs of ``hoodie-py`` in the process of a test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from hoodie_ds.cli.main import main


@dataclass(frozen=True)
class Run:
    """How a run ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.out.splitlines()]


def run(
    *arguments: str | Path, answer: str | None = None, env: dict[str, str | None] | None = None
) -> Run:
    """Run a command; what it did not foresee is raised. A variable of `env` that is None goes."""
    given = CliRunner().invoke(main, list(map(str, arguments)), input=answer, env=env)
    if given.exception is not None and not isinstance(given.exception, SystemExit):
        raise given.exception
    return Run(given.exit_code, given.stdout, given.stderr)


def done(*arguments: str | Path, answer: str | None = None) -> Run:
    """Run a command that ends well."""
    ended = run(*arguments, answer=answer)
    assert ended.code == 0, ended
    return ended

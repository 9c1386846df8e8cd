"""Plants every bug in turn and demands that its test fails: `python -m tests.mutants [WORD...]`.

Each in a copy of the package, which a test run of its own imports. With words, those alone whose
names hold one of them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.planted import MUTANTS, Mutant
from tests.mutants.runs import FAILED, PASSED, copied, module_with, run_tests


def survives(mutant: Mutant) -> str:
    """Plant a bug; return what the test run said if it did not find it, else nothing."""
    with tempfile.TemporaryDirectory() as folder:
        module = module_with(mutant.old, copied(Path(folder)) / "hoodie_ds")
        text = module.read_text("utf-8")
        module.write_text(text.replace(mutant.old, mutant.new), "utf-8")
        code, output = run_tests(Path(folder), [mutant.test])
    return "" if code == FAILED else f"{mutant.name}: exit code {code}\n{output}"


def check(mutants: Sequence[Mutant]) -> list[str]:
    """Return what is wrong: a test that fails without its bug, or passes with it."""
    with tempfile.TemporaryDirectory() as folder:
        code, output = run_tests(copied(Path(folder)), sorted({m.test for m in mutants}))
    if code != PASSED:
        return [f"without any bug: exit code {code}\n{output}"]
    with ThreadPoolExecutor(2) as pool:
        return [wrong for wrong in pool.map(survives, mutants) if wrong]


def main(words: Sequence[str]) -> int:
    """Check the bugs whose names hold one of the words; all without words."""
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    wrong = check(chosen)
    print("\n\n".join(wrong) or f"{len(chosen)} bugs planted, {len(chosen)} found")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

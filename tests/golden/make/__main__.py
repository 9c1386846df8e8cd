"""Makes all golden files with Apache Hudi on the JVM: ``python -m tests.golden.make``.

Tables are written by Hudi 1.2 on Spark 3.5 as the recipes of this folder say, and what its own
reader answers is kept beside them. Rows are the same each time; instant times and file names are
not. Name tables or histories to make only those; with ``--check`` nothing is made, and you are told
where Hudi answers other than the stored files say. Needs what ``.ci/setup test --jvm`` sets up.
A new golden is a function with the decorator ``golden`` in ``keys_and_types.py`` or
``services.py``; its docstring says what it shows.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.golden.golden_tables import FOLDER
from tests.golden.make import answers, keys_and_types, merge_histories, new_tables, services
from tests.golden.make.recipe import GOLDENS
from tests.interop.jvm_hudi import JvmHudi, start

NEW_TABLES = "new_tables"
HISTORIES = {f"history_{name}": name for name in merge_histories.NAMES}
RECIPES = (keys_and_types, services)
"""Modules whose import fills `GOLDENS`."""

# Plans in the tables name files by absolute paths: one folder, wherever the project is.
WORK = Path("/tmp/golden")


def make(oracle: JvmHudi, name: str) -> list[str]:
    """Make a golden; return a line for each of its files."""
    if name in HISTORIES:
        merge_histories.write_history(oracle, HISTORIES[name], WORK)
        return [f"{name}: made"]
    if name == NEW_TABLES:
        new_tables.write_new_tables(oracle, WORK)
        return [f"{name}: made"]
    return [f"{stored}: made" for stored in GOLDENS[name].make(oracle, WORK, FOLDER)]


def check(oracle: JvmHudi, name: str) -> list[str]:
    """Return a line for each answer that differs from the stored one."""
    if name in HISTORIES:
        return merge_histories.differences(oracle, HISTORIES[name], WORK)
    if name == NEW_TABLES:
        return new_tables.differences(oracle, WORK)
    made = WORK / "answers"
    made.mkdir(exist_ok=True)
    stored = [f"{found}.json.gz" for found in GOLDENS[name].make(oracle, WORK, made)]
    return [line for file in stored for line in answers.differences(FOLDER / file, made / file)]


def main() -> int:
    """Make or check golden files; return 1 if an answer differs, else 0."""
    description, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser("python -m tests.golden.make", None, description, rest)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to make; by default all")
    parser.add_argument("--check", action="store_true", help="make nothing, compare the answers")
    parser.add_argument("--list", action="store_true", help="list the names, and do nothing")
    arguments = parser.parse_args()
    about = {name: recipe.about for name, recipe in GOLDENS.items()}
    about |= dict.fromkeys(HISTORIES, "Batches of a hundred keys, and which rows win.")
    about[NEW_TABLES] = "The properties that new tables of many kinds get."
    if unknown := sorted(set(arguments.names) - set(about)):
        parser.error(f"no golden is called {', '.join(unknown)}: see --list")
    if arguments.list:
        print("\n".join(f"{name}: {text}" for name, text in about.items()))
        return 0
    if WORK.exists():
        parser.error(f"{WORK} is there: remove it, unless goldens are being made")
    differing = 0
    WORK.mkdir()
    try:
        with tempfile.TemporaryDirectory() as scratch, start(Path(scratch)) as oracle:
            for name in arguments.names or about:
                lines = (check if arguments.check else make)(oracle, name)
                differing += len(lines) if arguments.check else 0
                print("\n".join(lines or [f"{name}: as stored"]), flush=True)
    finally:
        shutil.rmtree(WORK)
    return min(differing, 1)


if __name__ == "__main__":
    sys.exit(main())

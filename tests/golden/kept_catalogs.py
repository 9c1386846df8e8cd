"""Tables of Hudi on the JVM as they were after each of its syncs, and what a metastore had then."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "catalogs"
NAMES: Final = sorted(path.stem for path in FOLDER.glob("*.zip"))

_OURS: Final = "hudi_writer_version"
"""What each writer says of itself."""


@dataclass(frozen=True)
class KeptCatalog:
    """A table with what its syncs told a metastore.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    """

    name: str

    @property
    def database(self) -> str:
        """Its database."""
        return f"lake_{self.name}"

    def options(self) -> dict[str, str]:
        """Return the options of its syncs."""
        with zipfile.ZipFile(FOLDER / f"{self.name}.zip") as kept:
            options: dict[str, str] = json.loads(kept.read("answers.json"))["options"]
        return {**options, "hoodie.meta_sync.spark.version": "3.5.8"}

    def steps(self, base: Path) -> Iterator[dict[str, Any]]:
        """Make the table at a base path as it was after each write, and yield the answers."""
        with zipfile.ZipFile(FOLDER / f"{self.name}.zip") as kept:
            steps = json.loads(kept.read("answers.json"))["steps"]
            for number, step in enumerate(steps):
                shutil.rmtree(base, ignore_errors=True)
                entries = [name for name in kept.namelist() if name.startswith(f"{number}/")]
                kept.extractall(base.parent, entries)
                (base.parent / str(number)).rename(base)
                yield self.comparable(step)

    def comparable(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return an answer without what two writers are to differ in."""
        unlike = {_OURS}
        if self.name.startswith("v6"):  # the time of a file there, which the timeline has not
            unlike.add("last_commit_completion_time_sync")
        kept = {}
        for view, found in answer.items():
            properties = found["properties"].items()
            told = {key: text for key, text in properties if key not in unlike}
            kept[view] = {**found, "properties": told}
        return kept

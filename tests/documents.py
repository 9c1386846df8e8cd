"""The project's Markdown, as its tests read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
PAGES = sorted(path.relative_to(PROJECT).as_posix() for path in PROJECT.glob("docs/**/*.md"))
"""What users read beyond the README, by their paths in the project."""


def document(name: str) -> str:
    """Return the text of a document, by its path in the project."""
    return (PROJECT / name).read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run_example(code: str, names: dict[str, Any], folder: Path) -> None:
    """Run an example with its tables in a folder of the test's rather than in ``/tmp``."""
    here = code.replace('"/tmp/', f'"{folder}/')
    exec(compile(here, "<example>", "exec", dont_inherit=True), names)


def links(text: str) -> Iterator[tuple[str, str]]:
    """Yield file and heading of each link within the project; the file is empty for its own."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if "://" not in target:
            file, _, heading = target.partition("#")
            yield file, heading


def headings(text: str) -> set[str]:
    """Return the anchors of all headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

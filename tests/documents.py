"""The project's Markdown, as its tests read it."""

from __future__ import annotations

import ast
import doctest
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
    """Run an example with its tables in a folder of the test's."""
    here = re.sub('"/(tmp|data)/', f'"{folder}/', code)
    exec(compile(here, "<example>", "exec", dont_inherit=True), names)


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield each docstring of the package that has examples, after its module and name."""
    for path in sorted((PROJECT / "hoodie_ds").rglob("*.py")):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if ">>>" in source else ():
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                if ">>>" in text:
                    module = path.relative_to(PROJECT / "hoodie_ds").as_posix()
                    yield f"{module}:{getattr(node, 'name', '')}", text


def run_docstring(text: str, names: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the examples of a docstring, which print what it says; return their names."""
    here = text.replace('"/tmp/', f'"{folder}/')
    test = doctest.DocTestParser().get_doctest(here, names, "docstring", None, None)
    shown: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test, out=shown.append, clear_globs=False).failed == 0, "".join(shown)
    return test.globs


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

"""Pages of the site that are documents elsewhere in the project, and links between all of them.

Links are written as a viewer of the repository follows them. On the site those to other documents
lead to their pages. Those to other files lead into the repository, if `repo_url` is set.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_PROJECT: Final = Path(__file__).parents[1]
_PAGES: Final = {
    "README.md": "index.md",
    "conf/README.md": "reference/options.md",
    "CHANGELOG.md": "reference/changelog.md",
    "examples/README.md": "tutorials/examples.md",
    "hoodie_ds/README.md": "design/protocol.md",
    "tests/README.md": "design/tests.md",
    "benchmarks/README.md": "design/benchmarks.md",
    "CONTRIBUTING.md": "design/contributing.md",
    "SECURITY.md": "design/security.md",
    **{f"conf/{path.name}": f"conf/{path.name}" for path in _PROJECT.glob("conf/*.properties")},
}
_DOCUMENTS: Final = {page: name for name, page in _PAGES.items()}
_CODE: Final = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_ROW: Final = re.compile(r"^\|.*$", re.MULTILINE)
_IN_ROW: Final = re.compile(r"`[^`]*`")
_OPTION: Final = re.compile(r"`(\w+(?:\.\w+)+(?:=\w+)?|\w{25,})`")
_NAME: Final = re.compile(r"(?<![`.\w])(?:org\.apache(?:\.\w+)+|[A-Z]\w{20,})")
_BREAKS: Final = re.compile(r"(?<=[.=_])|(?<=[a-z])(?=[A-Z])")
_NESTED: Final = re.compile(r"^  (?=- )", re.MULTILINE)
_LINK: Final = re.compile(r"\[((?:`[^`]*`|[^\[\]`])*)\]\((?![a-z]+:)([^)#\s]*)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the documents that are outside the folder of the site."""
    for name, page in _PAGES.items():
        files.append(File.generated(config, page, content=(_PROJECT / name).read_text("utf-8")))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page to pages, and adapt the code in its tables."""
    here = page.file.src_uri
    if here == _PAGES["conf/README.md"]:
        page.meta["hide"] = ["toc"]  # the tables are as wide as that
    folder = posixpath.dirname(_DOCUMENTS.get(here, f"docs/{here}"))

    def linked(found: re.Match[str]) -> str:
        text, file, anchor = found[1], found[2], found[3] or ""
        if not file:
            return found[0]
        target = posixpath.normpath(posixpath.join(folder, file))
        uri = _PAGES.get(target, target.removeprefix("docs/"))
        if target in _PAGES or target.startswith("docs/"):
            return f"[{text}]({posixpath.relpath(uri, posixpath.dirname(here) or '.')}{anchor})"
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{target}{anchor})"
        return text if "`" in text or "/" not in text else f"`{text}`"

    parts = _CODE.split(markdown)
    for number, part in enumerate(parts[::2]):
        # Python-Markdown nests a list from four blanks on
        parts[2 * number] = _NESTED.sub("    ", _ROW.sub(_row, _LINK.sub(linked, part)))
    return "".join(parts)


def _row(row: re.Match[str]) -> str:
    """Drop the backslash before a bar in code, which only GitHub needs; let long names break."""
    text = _IN_ROW.sub(lambda code: code[0].replace("\\|", "|"), row[0])
    text = _NAME.sub(lambda name: _BREAKS.sub("<wbr>", name[0]), text)
    return _OPTION.sub(lambda code: f"<code>{_BREAKS.sub('<wbr>', code[1])}</code>", text)

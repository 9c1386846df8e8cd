from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.golden_tables import FOLDER


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], list[Path]]:
    """Unzips the golden tables whose name matches a pattern; gives all their files."""

    def unzip(pattern: str) -> list[Path]:
        for archive in sorted(FOLDER.glob(f"{pattern}.zip")):
            with zipfile.ZipFile(archive) as file:
                file.extractall(tmp_path / archive.stem)
        files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        return [path for path in files if "__MACOSX" not in path.parts]

    return unzip

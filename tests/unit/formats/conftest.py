from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

_GOLDEN = Path(__file__).parents[4] / "shared" / "golden"


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], list[Path]]:
    """Unzips the golden tables whose name matches a pattern; gives all their files."""

    def unzip(pattern: str) -> list[Path]:
        archives = sorted(_GOLDEN.glob(f"{pattern}.zip"))
        if not archives:
            pytest.skip(f"no golden tables {pattern} at {_GOLDEN}")
        for archive in archives:
            with zipfile.ZipFile(archive) as file:
                file.extractall(tmp_path / archive.stem)
        files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        return [path for path in files if "__MACOSX" not in path.parts]

    return unzip

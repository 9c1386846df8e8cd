from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.golden_tables import golden_names, unzip_table


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], list[Path]]:
    """Unzips the golden tables whose name begins so; gives their files but for empty ones."""

    def unzip(start: str) -> list[Path]:
        for name in golden_names(start):
            unzip_table(name, tmp_path)
        files = (path for path in tmp_path.rglob("*") if path.is_file())
        return sorted(path for path in files if path.stat().st_size)

    return unzip

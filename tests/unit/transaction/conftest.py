from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return open_storage(str(tmp_path / "table"))
    # The memory file system is one for the whole process: each test has a folder of its own.
    return open_storage(f"memory://{tmp_path}")

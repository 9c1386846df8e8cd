from pathlib import Path
from typing import cast

import pytest

from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.testing import FaultyStorage, MemoryStorage

PLACES = [
    "local",
    "memory",
    "s3",
    pytest.param("versitygw", marks=pytest.mark.slow),
    "test kit",
    "subfolder",
]


@pytest.fixture(params=PLACES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return open_storage(str(tmp_path / "table"))
    if request.param == "test kit":
        if "other_processes" in request.node.name:
            pytest.skip("lives in one process")
        return cast(Storage, FaultyStorage(MemoryStorage(f"memory://{tmp_path}")))
    if request.param == "subfolder":
        return SubfolderStorage(open_storage(str(tmp_path)), "table")
    if request.param in ("s3", "versitygw"):
        server = request.getfixturevalue(request.param)
        return open_storage(f"s3://tables{tmp_path}", server.options)
    # The memory file system is one for the whole process: each test has a folder of its own.
    return open_storage(f"memory://{tmp_path}")

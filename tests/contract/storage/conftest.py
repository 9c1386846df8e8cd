from pathlib import Path
from typing import cast

import pytest
from _pytest.mark import ParameterSet
from obstore.store import MemoryStore

from hoodie_ds.storage import clouds, hdfs_storage
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.object_storage import ObjectStorage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.storage.subfolder import SubfolderStorage
from hoodie_ds.testing import FaultyStorage, MemoryStorage
from tests.hdfs_in_memory import HdfsInMemory

SLOW = ("versitygw", "gcs", "azurite", "hdfs")
PLACES = ("local", "memory", "s3", *SLOW, "obstore", "hdfs in memory", "test kit", "subfolder")


def places(*without: str) -> list[ParameterSet]:
    """Return the parameters of all places but some."""
    names = (name for name in PLACES if name not in without)
    return [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in names]


_MEMORY = MemoryStore()
_HDFS = HdfsInMemory()


@pytest.fixture(params=places())
def storage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Storage:
    if request.param == "local":
        return open_storage(str(tmp_path / "table"))
    if request.param == "test kit":
        if "other_processes" in request.node.name:
            pytest.skip("lives in one process")
        return cast(Storage, FaultyStorage(MemoryStorage(f"memory://{tmp_path}")))
    if request.param == "subfolder":
        return SubfolderStorage(open_storage(str(tmp_path)), "table")
    if request.param == "obstore":
        monkeypatch.setattr(clouds, "connect", lambda *_, **__: _MEMORY)
        return RetryingStorage(ObjectStorage(f"gs://tables{tmp_path}"), 0)
    if request.param == "hdfs in memory":
        monkeypatch.setattr(hdfs_storage, "connect", lambda place, options: _HDFS)
        return open_storage(f"hdfs://node{tmp_path}")
    if request.param in ("s3", *SLOW):
        server = request.getfixturevalue(request.param)
        return open_storage(server.url(tmp_path), server.options)
    # The memory file system is one for the whole process: each test has a folder of its own.
    return open_storage(f"memory://{tmp_path}")

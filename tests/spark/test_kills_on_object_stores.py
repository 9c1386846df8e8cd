"""A real stream into a table on a remote storage, its driver killed, and its secrets kept."""

from __future__ import annotations

import pytest

from hoodie_ds.storage.connect import open_storage
from tests.spark.streams import Job
from tests.store_server import StoreServer
from tests.tally import tally
from tests.tiers import by_day

pytestmark = [pytest.mark.spark, pytest.mark.slow]

POINTS = ("data file whole", "manifest put")
SERVERS = by_day(["s3", "versitygw", "gcs", "azurite", "hdfs"], {"s3", "azurite"})


@pytest.mark.parametrize("kills", by_day([1, 2], {1}))
@pytest.mark.parametrize("server", SERVERS, indirect=True)
@pytest.mark.parametrize("job", ["mor"], indirect=True)
def test_a_driver_killed_on_an_object_store(job: Job, server: StoreServer, kills: int) -> None:
    job.server, job.extra = server, {"log_level": "INFO"}
    for point in POINTS[-kills:]:
        job.run_until_killed(point)
        assert job.actual() == job.expected(2)
    job.run()
    job.check()
    assert_secrets_are_nowhere(job, server)
    tally("Spark drivers killed", kills)


def assert_secrets_are_nowhere(job: Job, server: StoreServer) -> None:
    """Neither in what the applications printed, nor in the checkpoint, nor in the table."""
    files = [path for path in job.folder.rglob("*") if path.is_file()]
    kept = [path for path in files if path.name != "job.json"]
    assert {".out", ".err"} < {path.suffix for path in kept}
    seen = [*((str(path), path.read_bytes()) for path in kept)]
    table = open_storage(job.path, server.options)
    objects = [(one.path, table.read(one.path)) for one in table.list("", recursive=True)]
    assert len(objects) > 20
    assert [
        (name, secret)
        for name, body in [*seen, *objects]
        for secret in server.secrets
        if secret.encode() in body
    ] == []

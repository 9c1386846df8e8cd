"""A real stream into a table on S3, its driver killed, and whether its secrets were kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.s3_server import ID, SECRET, S3Server
from tests.spark.streams import Job
from tests.tiers import by_day

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def stored(server: S3Server, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Every object of a table, as the server holds it."""
    client = server.client()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="tables", Prefix=prefix):
        for found in page["Contents"]:
            body = client.get_object(Bucket="tables", Key=found["Key"])["Body"]
            yield found["Key"], body.read()


@pytest.mark.parametrize("server", by_day(["s3", "versitygw"], {"s3"}), indirect=True)
@pytest.mark.parametrize("job", ["mor"], indirect=True)
def test_a_driver_killed_twice_on_s3(job: Job, server: S3Server) -> None:
    job.server, job.extra = server, {"log_level": "INFO"}
    for point in ("data file whole", "manifest put"):
        job.run_until_killed(point)
        assert job.actual() == job.expected(2)
    job.run()
    job.check()
    assert_secrets_are_nowhere(job, server)


def assert_secrets_are_nowhere(job: Job, server: S3Server) -> None:
    """Neither in what the applications printed, nor in the checkpoint, nor in the table."""
    files = [path for path in job.folder.rglob("*") if path.is_file()]
    kept = [path for path in files if path.name != "job.json"]
    assert {".out", ".err"} < {path.suffix for path in kept}
    seen = [*((str(path), path.read_bytes()) for path in kept)]
    objects = [*stored(server, job.path.removeprefix("s3://tables/"))]
    assert len(objects) > 20
    assert [
        (name, secret)
        for name, body in [*seen, *objects]
        for secret in (ID, SECRET)
        if secret.encode() in body
    ] == []

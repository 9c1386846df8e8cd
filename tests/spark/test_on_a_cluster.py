"""Executors without the package get it with the job, as docs/tutorials/cluster.md says."""

from __future__ import annotations

import os
import shutil
import signal
import sysconfig
import time
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.applications import PATIENCE, ROOT
from tests.spark.cluster import two_hosts
from tests.spark.streams import Job
from tests.store_server import StoreServer
from tests.tiers import AT_NIGHT

pytestmark = [pytest.mark.spark, *AT_NIGHT]


def make_python(folder: Path) -> Path:
    """Make a Python with the packages of this one, but without this project."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return packages


def in_py_files(job: Job) -> dict[str, str]:
    """Send what is in a wheel."""
    name = shutil.make_archive(str(job.folder / "hoodie_ds"), "zip", ROOT, "hoodie_ds")
    return {"spark.submit.pyFiles": name}


def in_an_archive(job: Job) -> dict[str, str]:
    """Send a whole Python, which is in the driver's working folder too."""
    folder = job.folder / "environment"
    shutil.copytree(ROOT / "hoodie_ds", make_python(folder) / "hoodie_ds")
    job.extra["python"] = "./environment/bin/python"
    name = shutil.make_archive(str(job.folder / "sent"), "gztar", folder)
    return {"spark.archives": f"{name}#environment"}


@pytest.mark.parametrize("server", ["s3"], indirect=True)
@pytest.mark.parametrize("job", ["mor"], indirect=True)
@pytest.mark.parametrize("send", [in_py_files, in_an_archive])
def test_a_worker_and_the_driver_killed_where_nodes_lack_the_package(
    job: Job, server: StoreServer, send: Callable[[Job], dict[str, str]]
) -> None:
    job.server, job.files = server, 12
    job.write_source()
    make_python(job.folder / "python")
    with two_hosts(job.folder / "cluster") as cluster:
        conf = {"spark.executor.memory": "1g"}
        job.extra = {"master": cluster.url, "python": str(job.folder / "python/bin/python")}
        job.extra["conf"] = conf
        job.start()
        job.ends(1)
        last = job.log("err", 0).read_text().rstrip().splitlines()[-1]
        assert "a Python worker of Spark has no module 'hoodie_ds': install" in last
        job.extra["conf"] = conf | send(job)
        driver = job.start()
        await_batch(job, 2)
        cluster.kill_worker()
        await_batch(job, 5)
        os.killpg(driver.pid, signal.SIGKILL)
        job.ends(-signal.SIGKILL)
        job.run()
    job.check()


def await_batch(job: Job, number: int) -> None:
    """Wait until Spark has noted that a batch is done."""
    end = time.monotonic() + PATIENCE
    log = job.log("err", len(job.started) - 1)
    while not (job.folder / "checkpoint" / "commits" / f"{number}").exists():
        assert job.started[-1].poll() is None, log.read_text()[-4000:]
        assert time.monotonic() < end
        time.sleep(0.05)

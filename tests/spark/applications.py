"""A Spark application in a process of its own, which a test may kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.spark import fail_points

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0


@dataclass
class Application:
    """A module of `tests.spark` that is run with what it is to do in a file.

    Parameters
    ----------
    folder : Path
        For that file, the checkpoint, fail points, and what the application prints.
    module : str
        Name of the module.
    job : mapping
        What it is to do.
    """

    folder: Path
    module: str
    job: Mapping[str, object]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def points(self) -> Path:
        """Folder of armed fail points."""
        return self.folder / "points"

    def start(self) -> subprocess.Popen[bytes]:
        """Start it; what it prints goes to files."""
        self.points.mkdir(parents=True, exist_ok=True)
        file = self.folder / "job.json"
        file.write_text(json.dumps({**self.job, "folder": str(self.folder)}))
        number = len(self.started)
        with self.log("out", number).open("wb") as out, self.log("err", number).open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", f"tests.spark.{self.module}", str(file)],
                cwd=self.folder,
                env={
                    **os.environ,
                    "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
                    fail_points.FOLDER: str(self.points),
                },
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def log(self, stream: str, number: int) -> Path:
        """File of what one start of it prints."""
        return self.folder / f"{number}.{stream}"

    def ends(self, code: int = 0, timeout: float = PATIENCE) -> str:
        """Wait for the last one that was started, and return what it printed."""
        number = len(self.started) - 1
        self.started[-1].wait(timeout)
        assert self.started[-1].returncode == code, self.log("err", number).read_text()[-4000:]
        return self.log("out", number).read_text()

    def run(self, timeout: float = PATIENCE) -> str:
        """Run it to its end, and return what it printed."""
        self.start()
        return self.ends(timeout=timeout)

    def run_until_killed(self, point: str, after: int = 2, timeout: float = PATIENCE) -> None:
        """Run it with a fail point that ends the driver."""
        before = fail_points.struck(self.points)
        fail_points.Armed(point, after=after).put(self.points)
        self.start()
        self.ends(-signal.SIGKILL, timeout)
        assert fail_points.struck(self.points) == [*before, point]

    def end(self) -> None:
        """Kill what outlives a killed driver: Spark's workers have process groups of their own."""
        sessions = {process.pid for process in self.started}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.getsid(int(entry.name)) in sessions:
                    os.kill(int(entry.name), signal.SIGKILL)
        for process in self.started:
            process.wait(timeout=60)

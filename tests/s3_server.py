"""S3 servers for the suites, on loopback, in processes of their own: moto and versitygw.

versitygw, over a folder, is as one runs it. moto also makes faults on demand. It looks whether a
key is there and stores it in two steps, so its requests run one at a time here: otherwise two
conditional puts could both win, which real S3 excludes. Faults go by names, so that tests need no
second channel:

- a bucket ``lax``: conditions are ignored, as by servers that do not know them;
- ``busy-<n>``, ``slow-<n>``, ``conflict-<n>`` in a key: the first n requests of each kind are
  answered 503, 429 or 409, unheard;
- ``expired-<n>`` in a key: the first n are answered that the credentials have expired;
- ``lost-<n>`` in a key: the first n are carried out and answered 503 all the same;
- ``late-<n>`` in a key: the first n are carried out and answered after ten seconds;
- ``denied`` in a key: 403;
- ``bad-part`` in a key: the second part of a multipart upload is answered 403.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.store_server import StoreServer

ID, SECRET = "user-of-the-tests", "never-in-a-message"
BUCKETS = ("tables", "lax")
MISSING = [name for name in ("moto", "s3fs", "flask") if importlib.util.find_spec(name) is None]


@dataclass(frozen=True)
class S3Server(StoreServer):
    """A server of S3."""

    @property
    def secrets(self) -> tuple[str, ...]:
        return ID, SECRET

    def url(self, folder: object) -> str:
        return f"s3://tables{folder}"

    @property
    def options(self) -> dict[str, str]:
        region = '{"region_name": "us-east-1"}'
        return {
            "key": ID,
            "secret": SECRET,
            "endpoint_url": self.endpoint,
            "client_kwargs": region,
        }

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    @property
    def rust_options(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT": self.endpoint,
            "AWS_ACCESS_KEY_ID": ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def client(self) -> Any:
        """A plain client, to look at the server past this library."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ID,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )


@contextmanager
def running() -> Iterator[S3Server]:
    """Start moto on a free port, and stop it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.s3_server"],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        line = process.stdout.readline()
        assert line, "the S3 server did not start"
        server = S3Server(f"http://127.0.0.1:{int(line)}")
        client = server.client()
        for bucket in BUCKETS:
            client.create_bucket(Bucket=bucket)
        client.close()
        yield server
    finally:
        process.stdin.close()  # the server ends with its input, also if its tests are killed
        process.stdout.close()
        process.wait(timeout=30)


def find_versitygw() -> str | None:
    """The program: where ``.ci/run`` puts it, or on the PATH."""
    here = Path(__file__).parents[1] / ".work" / "bin" / "versitygw"
    return str(here) if here.exists() else shutil.which("versitygw")


@contextmanager
def running_versitygw(program: str, folder: Path) -> Iterator[S3Server]:
    """Start versitygw over a folder on a free port, and stop it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    # What it knows of objects goes to a folder beside, as not every disk has extended attributes.
    places = [folder / "sidecar", folder / "buckets"]
    for place in places:
        place.mkdir()
    process = subprocess.Popen(
        [program, "--port", address, "posix", "--sidecar", *map(str, places)],
        env={**os.environ, "ROOT_ACCESS_KEY": ID, "ROOT_SECRET_KEY": SECRET},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        server = S3Server(f"http://{address}")
        _await_port(address)
        client = server.client()
        client.create_bucket(Bucket="tables")
        client.close()
        yield server
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await_port(address: str) -> None:
    host, port = address.split(":")
    for _ in range(200):
        try:
            socket.create_connection((host, int(port))).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise AssertionError("versitygw did not start")


_BUSY = ("503 Service Unavailable", "ServiceUnavailable")
_REFUSALS = {
    "busy": _BUSY,
    "lost": _BUSY,
    "slow": ("429 Too Many Requests", "TooManyRequests"),
    "conflict": ("409 Conflict", "ConditionalRequestConflict"),
    "expired": ("400 Bad Request", "ExpiredToken"),
}


class _Faulty:
    """A WSGI application that answers one request at a time, some of them wrongly."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self._application = application
        self._seen: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        answer, seconds = self._answered(environ, start)
        time.sleep(seconds)
        return answer

    def _answered(
        self, environ: dict[str, Any], start: Callable[..., Any]
    ) -> tuple[list[bytes], float]:
        """Return the answer to a request, and how long it is on its way."""
        with self._lock:
            path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
            query = environ.get("QUERY_STRING", "")
            if path.startswith("/lax/"):
                environ.pop("HTTP_IF_NONE_MATCH", None)
            bad_part = "bad-part" in path and "partNumber=2" in query
            if bad_part or "denied" in path:
                return self._answer(environ, start, "403 Forbidden", "AccessDenied"), 0
            fault = re.search(r"(busy|slow|conflict|expired|lost|late)-(\d+)", path)
            # An upload tried again has another id.
            request = (method, path + "?" + re.sub("uploadId=[^&]*", "", query))
            self._seen[request] += 1
            if fault is None or self._seen[request] > int(fault[2]):
                return list(self._application(environ, start)), 0
            if fault[1] == "late":
                return list(self._application(environ, start)), 10
            if fault[1] == "lost":
                list(self._application(environ, lambda *_: None))
                environ["CONTENT_LENGTH"] = "0"  # it has been read
            return self._answer(environ, start, *_REFUSALS[fault[1]]), 0

    @staticmethod
    def _answer(
        environ: dict[str, Any], start: Callable[..., Any], status: str, code: str
    ) -> list[bytes]:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = f"<Error><Code>{code}</Code><Message>as the test wants</Message></Error>".encode()
        headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
        start(status, [*headers, ("Retry-After", "1")])
        return [body]


def main() -> None:
    """Serve until the input ends."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application = _Faulty(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()

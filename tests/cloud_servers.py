"""Servers of Google Cloud Storage and Azure for the suites, on loopback: fake-gcs-server, Azurite.

A proxy before them makes faults. Faults go by names, so that tests need no second channel; a number
says how often, for each kind of request:

- ``busy-<n>``, ``slow-<n>``: 503 or 429, unheard;
- ``expired-<n>``: 401, as for a token that has expired;
- ``lost-<n>``: carried out, and answered 503 all the same;
- ``dropped-<n>``: carried out, and the connection closed without an answer;
- ``cut-<n>``: the connection closed in the middle of the answer;
- ``denied``: 403;
- ``paged``: Google's listings have two files in a page;
- ``lax``: Google's server ignores the condition of a put, as one that does not know it.

fake-gcs-server has Google's JSON interface in full, and only part of the XML interface that obstore
uses. The proxy turns puts of the latter into uploads of the former, whose conditions the server
obeys, divides listings into pages, and keeps parts of files until they are whole. What the servers
cannot do: Azurite has no hierarchical namespace, and fake-gcs-server accepts any token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import re
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from tests.store_server import StoreServer

ACCOUNT = "devstoreaccount1"  # Azurite's, with its key
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
TOKEN = "never-in-a-message"
_WORK = Path(__file__).parents[1] / ".work"
Answer = tuple[int, dict[str, str], bytes]
_REFUSALS = {"busy": 503, "slow": 429, "expired": 401}
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass(frozen=True)
class GoogleServer(StoreServer):
    """fake-gcs-server behind the proxy."""

    @property
    def secrets(self) -> tuple[str, ...]:
        return (TOKEN,)

    def url(self, folder: object) -> str:
        return f"gs://tables{folder}"

    @property
    def options(self) -> dict[str, str]:
        return {"base_url": self.endpoint, "bearer_token": TOKEN}

    @property
    def environment(self) -> dict[str, str]:
        return {"GOOGLE_BASE_URL": self.endpoint, "GOOGLE_BEARER_TOKEN": TOKEN}

    @property
    def rust_options(self) -> dict[str, str]:
        account = {"gcs_base_url": self.endpoint, "disable_oauth": True}
        account |= {"client_email": "", "private_key": "", "private_key_id": ""}
        return {"google_service_account_key": json.dumps(account), "allow_http": "true"}


@dataclass(frozen=True)
class AzureServer(StoreServer):
    """Azurite behind the proxy."""

    @property
    def secrets(self) -> tuple[str, ...]:
        return (KEY,)

    def url(self, folder: object) -> str:
        return f"abfss://tables@{ACCOUNT}.dfs.core.windows.net{folder}"

    def http_url(self, folder: object) -> str:
        asked = {"sp": "rcw", "se": "2100-01-01", "spr": "https,http", "sv": "2020-12-06"}
        asked |= {"sr": "c"}
        place = f"/blob/{ACCOUNT}/tables"
        lines = (asked["sp"], "", asked["se"], place, "", "", asked["spr"], asked["sv"], "c")
        signature = _signature("\n".join((*lines, *7 * [""])))
        signed = urlencode(asked | {"sig": signature})
        return f"{self.endpoint}/{ACCOUNT}/tables{folder}?{signed}"

    @property
    def options(self) -> dict[str, str]:
        endpoint = f"{self.endpoint}/{ACCOUNT}"
        return {"account_key": KEY, "endpoint": endpoint}

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"{self.endpoint}/{ACCOUNT}",
        }

    @property
    def rust_options(self) -> dict[str, str]:
        options = {f"azure_storage_{name}": text for name, text in self.options.items()}
        return {**options, "allow_http": "true"}


def find_fake_gcs() -> list[str] | None:
    """The command: where ``.ci/setup`` puts the program, or on the PATH."""
    here = _WORK / "bin" / "fake-gcs-server"
    found = str(here) if here.exists() else shutil.which("fake-gcs-server")
    return [found] if found else None


def find_azurite() -> list[str] | None:
    """The same of Azurite."""
    here = _WORK / "azurite" / "node_modules" / ".bin" / "azurite-blob"
    found = str(here) if here.exists() else shutil.which("azurite-blob")
    return [found] if found else None


@contextmanager
def running_fake_gcs(command: list[str]) -> Iterator[StoreServer]:
    """Start fake-gcs-server on a free port, and stop it at the end."""
    port = _free_port()
    options = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", f"{port}"]
    options += ["-public-host", f"127.0.0.1:{port}", "-log-level", "error"]
    with _running([*command, *options], port), proxy(port, _as_json) as endpoint:
        body = json.dumps({"name": "tables"}).encode()
        forward(port, "POST", "/storage/v1/b?project=p", {}, body)
        yield GoogleServer(endpoint)


@contextmanager
def running_azurite(command: list[str]) -> Iterator[StoreServer]:
    """Start Azurite on a free port, and stop it at the end."""
    port = _free_port()
    options = ["--blobPort", f"{port}", "--inMemoryPersistence", "--skipApiVersionCheck"]
    options += ["--silent", "--disableTelemetry"]
    with _running([*command, *options], port), proxy(port, forward) as endpoint:
        place, headers = f"/{ACCOUNT}/tables", {"x-ms-date": formatdate(usegmt=True)}
        headers["x-ms-version"] = "2021-08-06"
        named = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        signed = "PUT" + 12 * "\n" + f"{named}/{ACCOUNT}{place}\nrestype:container"
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{_signature(signed)}"
        status, _, answer = forward(port, "PUT", f"{place}?restype=container", headers, b"")
        assert status == 201, answer
        yield AzureServer(endpoint)


def _signature(text: str) -> str:
    digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
    return base64.b64encode(digest).decode()


_parts: dict[str, dict[int, bytes]] = {}
"""Of Google's uploads under way, by their ids, which are the paths of their files."""


def _as_json(port: int, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
    """Pass a request of the XML interface on to a server that knows the JSON interface."""
    url = urlsplit(target)
    bucket, _, name = url.path.lstrip("/").partition("/")
    query = parse_qs(url.query, keep_blank_values=True)
    if "uploads" in query:
        _parts[url.path] = {}
        return 200, {}, f"<U><UploadId>{url.path}</UploadId></U>".encode()
    if "partNumber" in query:
        _parts[query["uploadId"][0]][int(query["partNumber"][0])] = body
        return 200, {"etag": '"part"'}, b""
    if "uploadId" in query:
        sent = _parts.pop(query["uploadId"][0], None)
        if sent is None:
            return 404, {}, b"no such upload"
        whole = b"".join(part for _, part in sorted(sent.items()))
        _as_json(port, "PUT", url.path, {}, whole)
        return 200, {}, b'<C><ETag>"whole"</ETag></C>'
    if method == "PUT":
        asked = {"uploadType": "multipart", "name": unquote(name)}
        if "x-goog-if-generation-match" in headers and "lax" not in name:
            asked["ifGenerationMatch"] = headers["x-goog-if-generation-match"]
        target = f"/upload/storage/v1/b/{bucket}/o?{urlencode(asked)}"
        parts = (b"Content-Type: application/json\r\n\r\n{}", b"Content-Type: a/b\r\n\r\n" + body)
        form = b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + b"--b--"
        kind = {"Content-Type": "multipart/related; boundary=b"}
        status, answered, answer = forward(port, "POST", target, kind, form)
        if status == 200:
            put = json.loads(answer)
            answered |= {"etag": f'"{put["etag"]}"', "x-goog-generation": put["generation"]}
        return status, answered, answer
    status, answered, answer = forward(port, method, target, headers, body)
    if method == "GET" and "paged" in url.query:
        answer = _page(answer, query.get("continuation-token", ["0"])[0])
    return status, answered, answer


def _page(listing: bytes, token: str) -> bytes:
    """Leave two files of a listing, from a number on."""
    files = re.findall(rb"<Contents>.*?</Contents>", listing, re.DOTALL)
    start, end = int(token), int(token) + 2
    for number, file in enumerate(files):
        if not start <= number < end:
            listing = listing.replace(file, b"", 1)
    more = b"<NextContinuationToken>%d</NextContinuationToken>" % end if files[end:] else b""
    return listing.replace(b"</ListBucketResult>", more + b"</ListBucketResult>")


def forward(port: int, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


@contextmanager
def proxy(port: int, passed: Callable[..., Answer]) -> Iterator[str]:
    seen: Counter[tuple[str, str, str]] = Counter()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body of an answer go out together
        disable_nagle_algorithm = True

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            named = unquote(self.path)
            if "comp=batch" in named:  # its body names the files
                named += unquote(body.decode())
            fault = re.search(r"(busy|slow|expired|lost|dropped|cut)-(\d+)", named)
            kind = ""
            if "denied" in named:
                return self._answer((403, {}, b"denied, as the test wants"))
            if fault is not None:
                request = (self.command, self.path, self.headers.get("range", ""))
                with lock:
                    seen[request] += 1
                    kind = fault[1] if seen[request] <= int(fault[2]) else ""
            if kind in _REFUSALS:
                return self._answer((_REFUSALS[kind], {"retry-after": "1"}, b"as the test wants"))
            headers = {k.lower(): v for k, v in self.headers.items() if k.lower() not in _HOP}
            headers["host"] = f"127.0.0.1:{port}"
            answer = passed(port, self.command, self.path, headers, body)
            if kind == "dropped":
                self.close_connection = True
                return None
            return self._answer((503, {}, b"as the test wants") if kind == "lost" else answer, kind)

        def _answer(self, answer: Answer, kind: str = "") -> None:
            status, headers, body = answer
            self.send_response_only(status)
            for name, value in headers.items():
                if name not in _HOP:
                    self.send_header(name, value)
            length = headers.get("content-length") if self.command == "HEAD" else len(body)
            self.send_header("Content-Length", f"{length or 0}")
            self.end_headers()
            if kind == "cut":
                self.close_connection = True
                body = body[: len(body) // 2]
            self.wfile.write(body)
            self.wfile.flush()

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        for _ in range(400):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise AssertionError(f"{command[0]} did not start")
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)

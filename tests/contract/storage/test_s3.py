"""What only S3 can do wrong: multipart uploads, pages, conditions, secrets, lost answers."""

import json
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import boto3
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    HoodieError,
    NotFoundError,
    OptionError,
    StorageError,
    UnavailableError,
)
from hoodie_ds.storage import streams
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.storage.s3_storage import S3Storage
from tests.cli_runs import run
from tests.documents import blocks, document
from tests.s3_server import ID, SECRET, S3Server
from tests.tables import TRIPS, found, trips

PART = 5 << 20
SERVERS = ["s3", pytest.param("versitygw", marks=pytest.mark.slow)]


@pytest.fixture
def root(tmp_path: Path) -> str:
    return f"s3://tables{tmp_path}"


@pytest.fixture
def storage(s3: S3Server, root: str) -> RetryingStorage:
    found = open_storage(root, s3.options)
    assert isinstance(found, RetryingStorage)
    return found


def once(storage: RetryingStorage) -> S3Storage:
    """The same storage without retries."""
    assert isinstance(storage.inner, S3Storage)
    return storage.inner


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PART_BYTES", PART)


def uploads(server: S3Server, root: str) -> list[str]:
    prefix = root.removeprefix("s3://tables/")
    answer = server.client().list_multipart_uploads(Bucket="tables")
    return [u["Key"] for u in answer.get("Uploads", []) if u["Key"].startswith(prefix)]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_a_large_file_goes_up_in_parts_and_on_condition(server: S3Server, root: str) -> None:
    storage = open_storage(root, server.options)
    content = os.urandom(2 * PART + 7)
    with storage.open_output("data") as file:
        file.write(content)
        assert len(uploads(server, root)) == 1  # before the end
        assert storage.list("") == []
    assert storage.read("data") == content
    with pytest.raises(AlreadyExistsError), storage.open_output("data") as file:
        file.write(b"x" * (PART + 1))
    assert storage.read("data") == content
    key = f"{root.removeprefix('s3://tables/')}/data"
    assert server.client().head_object(Bucket="tables", Key=key)["ETag"].endswith('-3"')
    assert uploads(server, root) == []


@pytest.mark.usefixtures("small_parts")
def test_a_failed_upload_is_aborted_on_the_server(
    s3: S3Server, storage: RetryingStorage, root: str
) -> None:
    with pytest.raises(AccessDeniedError), storage.open_output("bad-part") as file:
        file.write(b"x" * (2 * PART))
    assert storage.list("") == []
    with pytest.raises(NotFoundError):
        storage.read("bad-part")
    assert uploads(s3, root) == []


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_an_upload_left_by_an_exception_is_aborted(server: S3Server, root: str) -> None:
    storage = open_storage(root, server.options)

    def interrupted() -> None:
        with storage.open_output("data") as file:
            file.write(b"x" * (2 * PART))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert storage.list("") == []
    assert uploads(server, root) == []


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_parts_of_some_files_are_deleted(
    server: S3Server, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from s3fs import S3FileSystem

    storage = open_storage(root, server.options)
    assert isinstance(storage, RetryingStorage)
    ask = S3FileSystem.call_s3

    def one_in_a_page(system: S3FileSystem, method: str, **given: Any) -> Any:
        after = given.pop("KeyMarker", ""), given.pop("UploadIdMarker", "")
        page = ask(system, method, **given)
        if method == "list_multipart_uploads":
            found = {(one["Key"], one["UploadId"]): one for one in page.get("Uploads", ())}
            left = sorted(marker for marker in found if marker > after)
            page = {"IsTruncated": len(left) > 1, "Uploads": [found[one] for one in left[:1]]}
            page["NextKeyMarker"], page["NextUploadIdMarker"] = left[0] if left else after
        return page

    monkeypatch.setattr(S3FileSystem, "call_s3", one_in_a_page)
    for path in ("p/f", "p/f", "p/f1", "q"):
        once(storage).begin_upload(path).put(1, b"x")
    storage.put_if_absent("p/g", b"whole")
    for _ in range(2):
        storage.abort_uploads(["p/f", "p/g", "p/none"])
        assert sorted(key.removeprefix(f"{root[12:]}/") for key in uploads(server, root)) == [
            "p/f1",
            "q",
        ]
    assert storage.read("p/g") == b"whole"


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_parts_of_a_dead_writer_are_deleted_with_its_write(
    s3: S3Server, root: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        """The process has ended."""

    def died(_: object) -> None:
        raise Died

    options = {**TRIPS, **s3.table_options, "hoodie.datasource.write.table.type": kind}
    table = HoodieTable(root, options)
    table.upsert(trips(("a", "oslo", 1, 1.0)))
    with monkeypatch.context() as dying:
        dying.setattr(streams, "PART_BYTES", 100)
        dying.setattr("hoodie_ds.storage.retrying._RetryingUpload.complete", died)
        dying.setattr("hoodie_ds.storage.retrying._RetryingUpload.abort", died)
        with pytest.raises(Died):
            table.upsert(trips(("a", "oslo", 2, 2.0), ("b", "rome", 2, 2.0)))
    assert len(uploads(s3, root)) == 1
    table.upsert(trips(("b", "rome", 3, 3.0)))
    assert uploads(s3, root) == []
    assert found(table) == [("a", "oslo", 1, 1.0), ("b", "rome", 3, 3.0)]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("fault", ["busy", "lost"])
def test_an_upload_each_of_whose_steps_fails_once_is_done(
    storage: RetryingStorage, fault: str
) -> None:
    content = os.urandom(PART + 7)
    with storage.open_output(f"{fault}-1") as file:
        file.write(content)
    assert storage.read(f"{fault}-1") == content


@pytest.mark.usefixtures("small_parts")
def test_a_lost_completion_does_not_take_a_file_of_others_for_its_own(
    storage: RetryingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = once(storage)
    upload = inner.begin_upload("f")
    complete = type(upload).complete

    def overtaken(self: object) -> None:
        monkeypatch.setattr(type(upload), "complete", complete)
        inner.put_if_absent("f", b"theirs")
        raise UnavailableError("the answer is lost")

    monkeypatch.setattr(type(upload), "complete", overtaken)
    with pytest.raises(AlreadyExistsError), storage.open_output("f") as file:
        file.write(b"x" * (PART + 1))
    assert storage.read("f") == b"theirs"


def test_an_upload_that_another_process_aborts_fails_at_once(
    storage: RetryingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import ClientError
    from s3fs import S3FileSystem

    upload = once(storage).begin_upload("f")

    def missing(self: object, method: str, **_: object) -> None:
        # moto answers with status 500 instead
        answer = {"Error": {"Code": "NoSuchUpload", "Message": "gone"}}
        raise FileNotFoundError from ClientError(answer, method)

    monkeypatch.setattr(S3FileSystem, "call_s3", missing)
    for call in (lambda: upload.put(1, b"x"), upload.complete, upload.abort):
        with pytest.raises(NotFoundError, match="aborted by another process"):
            call()
    storage.put_if_absent("f", b"x")  # as a try to complete it whose answer was lost
    with pytest.raises(AlreadyExistsError):
        upload.complete()


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_a_listing_has_as_many_pages_as_it_takes(
    server: S3Server, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from s3fs import S3FileSystem

    storage = open_storage(root, server.options)
    names = [f"many/{number:04}" for number in range(8)]
    for name in names:
        storage.put_if_absent(name, b"")
    ask, pages = S3FileSystem.call_s3, []

    def in_small_pages(system: S3FileSystem, method: str, **given: Any) -> Any:
        if method != "list_objects_v2":
            return ask(system, method, **given)
        page = ask(system, method, MaxKeys=3, **given)
        pages.append(page["KeyCount"])
        return page

    monkeypatch.setattr(S3FileSystem, "call_s3", in_small_pages)
    assert [status.path for status in storage.list("many")] == names
    assert pages == [3, 3, 2]
    assert [status.path for status in storage.list("", recursive=True)] == names
    storage.delete("many")
    assert storage.list("", recursive=True) == []


def test_a_file_is_read_and_a_folder_listed_by_one_request(
    storage: RetryingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from s3fs import core

    sent, send = [], core._error_wrapper

    def counting(method: Callable[..., Any], **given: object) -> object:
        sent.append(method)
        return send(method, **given)

    storage.put_if_absent("a/f", b"x")
    monkeypatch.setattr(core, "_error_wrapper", counting)
    assert storage.read("a/f") == b"x"
    with pytest.raises(NotFoundError):
        storage.read("a/missing")
    assert [status.path for status in storage.list("a")] == ["a/f"]
    assert storage.list("empty") == storage.list("empty", recursive=True) == []
    assert storage.list("empty", folders=True) == []
    assert len(sent) == 6


def test_no_names_are_listed_but_those_that_begin_alike(
    storage: RetryingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from s3fs import S3FileSystem

    listed: list[str] = []
    call = S3FileSystem.call_s3

    def noting(self: object, method: str, **given: object) -> dict[str, Any]:
        answer = call(self, method, **given)
        listed.extend(entry["Key"].rpartition("/")[2] for entry in answer["Contents"])
        return cast(dict[str, Any], answer)

    for name in ("20.commit", "20.inflight", "21.commit"):
        storage.put_if_absent(f"a/{name}", b"")
    monkeypatch.setattr(S3FileSystem, "call_s3", noting)
    assert storage.names("a", "20") == listed == ["20.commit", "20.inflight"]


def test_a_put_whose_answer_is_lost_is_found_out(storage: RetryingStorage) -> None:
    with pytest.raises(UnavailableError):
        once(storage).put_if_absent("lost-1", b"x")
    storage.put_if_absent("again/lost-2", b"mine")
    assert storage.read("again/lost-2") == b"mine"
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("again/lost-2", b"mine")  # no try of this call was lost


def test_the_library_below_does_not_retry(storage: RetryingStorage) -> None:
    """Else it would report the name as taken by somebody else after its own lost try."""
    with pytest.raises(UnavailableError):
        once(storage).put_if_absent("lost-1", b"x")
    for call in (once(storage).read, once(storage).open_input, once(storage).delete):
        with pytest.raises(UnavailableError):
            call(f"busy-1-{call.__name__}")


def _answering(monkeypatch: pytest.MonkeyPatch, *answers: list[dict[str, str]]) -> list[list[str]]:
    """Let the server refuse single keys of requests to delete; returns the keys of each request."""
    from s3fs import S3FileSystem

    asked: list[list[str]] = []
    call, left = S3FileSystem.call_s3, list(answers)

    def answered(self: object, method: str, **arguments: Any) -> Any:
        if method != "delete_objects":
            return call(self, method, **arguments)
        keys = [one["Key"] for one in arguments["Delete"]["Objects"]]
        asked.append(keys)
        refused = left.pop(0) if left else []
        names = {str(one["Key"]) for one in refused}
        there = [{"Key": key} for key in keys if key.rpartition("/")[2] not in names]
        some = {**arguments, "Delete": {"Objects": there, "Quiet": True}}
        answer = call(self, method, **some) if there else {}
        whole = [{**one, "Key": k} for one in refused for k in keys if k.endswith(f"/{one['Key']}")]
        return {**answer, "Errors": whole}

    monkeypatch.setattr(S3FileSystem, "call_s3", answered)
    return asked


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_a_thousand_files_are_deleted_with_a_request(
    monkeypatch: pytest.MonkeyPatch, server: S3Server, root: str
) -> None:
    storage = open_storage(root, server.options)
    storage.put_if_absent("p/f0000", b"")
    storage.put_if_absent("p/f1200", b"")
    asked = _answering(monkeypatch)
    storage.delete_many([f"p/f{number:04}" for number in range(1201)])
    assert [len(keys) for keys in asked] == [1000, 201]
    assert storage.list("p") == []


def test_a_key_that_may_not_be_deleted_is_named(
    monkeypatch: pytest.MonkeyPatch, storage: RetryingStorage
) -> None:
    for name in ("a", "kept", "z"):
        storage.put_if_absent(f"p/{name}", b"")
    denied = {"Key": "kept", "Code": "AccessDenied", "Message": "it is locked"}
    _answering(monkeypatch, [denied])
    with pytest.raises(AccessDeniedError, match=r"cannot delete 'p/kept' below .*it is locked"):
        storage.delete_many(["p/a", "p/kept", "p/z"])
    assert [status.path for status in storage.list("p")] == ["p/kept"]


def test_a_key_that_is_busy_or_gone_is_deleted(
    monkeypatch: pytest.MonkeyPatch, storage: RetryingStorage
) -> None:
    for name in ("a", "busy"):
        storage.put_if_absent(f"p/{name}", b"")
    busy = {"Key": "busy", "Code": "SlowDown", "Message": "reduce your request rate"}
    gone = {"Key": "gone", "Code": "NoSuchKey", "Message": "it is not there"}
    asked = _answering(monkeypatch, [gone, busy])
    storage.delete_many(["p/a", "p/busy", "p/gone"])
    assert storage.list("p") == []
    assert len(asked) == 2
    _answering(monkeypatch, [busy])
    with pytest.raises(UnavailableError, match=r"cannot delete 'p/busy'.*SlowDown"):
        once(storage).delete_many(["p/busy"])
    strange = {"Key": "odd", "Code": "Strange", "Message": "?"}
    _answering(monkeypatch, [strange])
    with pytest.raises(StorageError, match=r"'p/odd'.*Strange"):
        storage.delete_many(["p/odd"])


@pytest.mark.parametrize(
    "fault",
    ["busy", *(pytest.param(name, marks=pytest.mark.slow) for name in ("slow", "conflict"))],
)
def test_what_fails_for_a_while_is_done(storage: RetryingStorage, fault: str) -> None:
    path = f"{fault}-2/f"
    storage.put_if_absent(path, b"0123456789")
    storage.replace(path, b"9876543210")
    assert storage.read(path) == b"9876543210"
    with storage.open_input(path) as file:
        file.seek(4)
        assert file.read() == b"543210"
    storage.delete(path)
    assert storage.list(f"{fault}-2") == []


def test_credentials_that_expire_are_reported_at_once_and_new_ones_are_used(
    storage: RetryingStorage,
) -> None:
    with pytest.raises(AccessDeniedError, match="as the test wants"):
        storage.put_if_absent("expired-1/f", b"x")
    storage.put_if_absent("expired-1/f", b"x")
    with pytest.raises(AccessDeniedError):
        storage.read("expired-1/f")
    assert storage.read("expired-1/f") == b"x"


@pytest.mark.slow
def test_a_put_whose_answer_comes_too_late_is_found_out(s3: S3Server, root: str) -> None:
    brief = {**s3.options, "config_kwargs": '{"read_timeout": 1}'}
    storage = open_storage(root, brief)
    assert isinstance(storage, RetryingStorage)
    with pytest.raises(UnavailableError):
        once(storage).put_if_absent("late-1", b"x")
    storage.put_if_absent("again/late-1", b"mine")
    assert storage.read("again/late-1") == b"mine"


def test_the_deadline_ends_the_tries(storage: RetryingStorage) -> None:
    impatient = replace(storage, deadline_ms=300)
    with pytest.raises(UnavailableError, match=r"after [2-9] tries .*retry\.deadline\.ms = 300\)"):
        impatient.put_if_absent("busy-9", b"")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_server_that_ignores_the_condition_is_refused_at_creation(
    s3: S3Server, tmp_path: Path, kind: str
) -> None:
    opts = {**TRIPS, **s3.table_options, "hoodie.datasource.write.table.type": kind}
    table = HoodieTable(f"s3://lax{tmp_path}", opts)
    with pytest.raises(OptionError, match="If-None-Match") as caught:
        table.upsert(trips(("a", "x", 1, 1.0)))
    assert caught.value.key == "hoodie.py.storage.allow.non.atomic.put"
    storage = open_storage(f"s3://lax{tmp_path}", s3.options)
    assert storage.list("", recursive=True) == []
    one_writer = {**opts, "hoodie.py.storage.allow.non.atomic.put": "true"}
    HoodieTable(f"s3://lax{tmp_path}", one_writer).upsert(trips(("a", "x", 1, 1.0)))
    assert found(table) == [("a", "x", 1, 1.0)]


def test_the_probe_leaves_nothing_where_the_condition_is_obeyed(s3: S3Server, root: str) -> None:
    HoodieTable(root, {**TRIPS, **s3.table_options}).upsert(trips(("a", "x", 1, 1.0)))
    files = open_storage(root, s3.options).list("", recursive=True)
    assert [status.path for status in files if "probe" in status.path] == []


def test_secrets_are_in_no_message_log_line_or_file(
    s3: S3Server, root: str, caplog: pytest.LogCaptureFixture
) -> None:
    opts = {**TRIPS, **s3.table_options}
    with caplog.at_level(logging.DEBUG, "hoodie_ds"):
        HoodieTable(root, opts).upsert(trips(("a", "x", 1, 1.0)))
        calls: list[Callable[[], Any]] = [
            lambda: HoodieTable(f"{root}/denied", opts).upsert(trips(("a", "x", 1, 1.0))),
            lambda: open_storage("s3://no-such-bucket/t", s3.options).put_if_absent("f", b""),
            lambda: open_storage(root, s3.options, retry_ms=1).read("busy-9"),
            lambda: WriteOptions.parse({**opts, "path": f"s3://{ID}:{SECRET}@tables/t"}),
        ]
        for call in calls:
            with pytest.raises(HoodieError) as caught:
                call()
            link: BaseException | None = caught.value
            while link is not None:
                assert not {ID, SECRET} & set(_words(str(link) + repr(link)))
                link = link.__cause__
    storage = open_storage(root, s3.options)
    shown = [caplog.text, repr(storage), repr(WriteOptions.parse({**opts, "path": root}))]
    files = storage.list("", recursive=True)
    assert len(files) > 5
    shown += [storage.read(status.path).decode("latin-1") for status in files]
    assert [text for text in shown if ID in text or SECRET in text] == []


def _words(text: str) -> list[str]:
    return [secret for secret in (ID, SECRET) if secret in text]


def test_credentials_and_endpoint_may_come_from_the_environment(
    s3: S3Server, storage: RetryingStorage, root: str
) -> None:
    code = (
        "import sys\n"
        "from hoodie_ds.storage.connect import open_storage\n"
        "open_storage(sys.argv[1]).put_if_absent('f', b'from outside')\n"
        "open_storage(sys.argv[1]).put_if_absent('denied', b'')\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, root],
        env={**os.environ, **s3.environment},
        capture_output=True,
        text=True,
    )
    assert storage.read("f") == b"from outside"
    assert "AccessDeniedError: cannot create 'denied'" in process.stderr
    assert SECRET not in process.stderr
    assert ID not in process.stderr


def test_without_credentials_access_is_denied_at_once(root: str, s3: S3Server) -> None:
    options = {name: s3.options[name] for name in ("endpoint_url", "client_kwargs")}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("HOME", "/nowhere")
        with pytest.raises(AccessDeniedError):
            open_storage(root, options).put_if_absent("f", b"")


def test_a_bucket_that_is_missing_is_not_found(s3: S3Server) -> None:
    storage = open_storage("s3://no-such-bucket/t", s3.options)
    with pytest.raises(StorageError, match="no-such-bucket"):
        storage.put_if_absent("f", b"")
    assert storage.list("", recursive=True) == []


def test_the_tutorial(s3: S3Server, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = document("docs/tutorials/clouds.md").replace("s3://bucket", root)
    page = page.replace("https://s3.example.org", s3.endpoint)
    table, options, *of_hdfs = blocks(page, "python")
    show, lifecycle = blocks(page, "sh")
    names: dict[str, Any] = {"access_key": ID, "secret_key": SECRET}
    with monkeypatch.context() as environment:
        for name, text in s3.environment.items():
            environment.setenv(name, text)
        exec(table, names)
        shown = run(*shlex.split(show)[1:])
    assert (shown.code, "commits" in shown.out) == (0, True)
    exec(options, names)
    assert names["table"].count() == 2
    exec("\n".join(of_hdfs), names)
    assert HoodieTable("hdfs://ns/fares", names["opts"])
    rules = json.loads(shlex.split(lifecycle.replace("\\\n", " "))[-1])
    client = boto3.client("s3", endpoint_url=s3.endpoint, aws_access_key_id=ID,
                          aws_secret_access_key=SECRET, region_name="us-east-1")  # fmt: skip
    client.put_bucket_lifecycle_configuration(Bucket="tables", LifecycleConfiguration=rules)
    kept = client.get_bucket_lifecycle_configuration(Bucket="tables")["Rules"]
    assert kept[0]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 3}

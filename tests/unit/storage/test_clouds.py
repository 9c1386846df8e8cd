"""Which store a URL of Google Cloud Storage or Azure names, and with what it is opened."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace

import pytest
from obstore.exceptions import GenericError

from hoodie_ds.errors import OptionError, StorageError, UnavailableError
from hoodie_ds.storage import clouds, connections
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.object_storage import ObjectStorage
from hoodie_ds.storage.retrying import RetryingStorage

KEY = {"account_key": "c2VjcmV0"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("place", "options", "opened"),
    [
        ("gs://bucket", {"bearer_token": "t"}, ("GCSStore", "bucket", {"bearer_token": "t"})),
        ("gcs://bucket", {"timeout": "1 h"}, ("GCSStore", "bucket", {"timeout": "1 h"})),
        ("az://c", {"account_name": "a"}, ("AzureStore", "c", {"account_name": "a"})),
        ("abfs://c", {}, ("AzureStore", "c", {})),
        (
            "abfss://c@a.dfs.core.windows.net",
            {"account_key": "k"},
            ("AzureStore", "c", {"account_name": "a", "account_key": "k"}),
        ),
        (
            "abfss://c@a.dfs.core.windows.net",
            {"account_name": "b"},
            ("AzureStore", "c", {"account_name": "b"}),
        ),
        (
            "abfss://c@a.dfs.core.chinacloudapi.cn",
            {},
            (
                "AzureStore",
                "c",
                {"account_name": "a", "endpoint": "https://a.blob.core.chinacloudapi.cn"},
            ),
        ),
    ],
)
def test_what_a_store_is_opened_with(
    place: str,
    options: dict[str, str],
    opened: tuple[str, str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GCSStore", "AzureStore"):
        monkeypatch.setattr(f"obstore.store.{name}", lambda *a, name=name, **k: (name, *a, k))
    kind, bucket, config = opened
    config = {"timeout": "2 minutes", "allow_http": "true", **config}
    retries = {"max_retries": 0}
    found = clouds.connect(place, options)
    assert found == (kind, bucket, {"config": config, "retry_config": retries})


@pytest.mark.parametrize("scheme", ["gs", "gcs", "az", "abfs", "abfss"])
def test_a_url_of_a_cloud_is_taken_as_it_is(scheme: str) -> None:
    storage = open_storage(f"{scheme}://bucket/deep/table/", {"a": "b"}, retry_ms=7)
    assert isinstance(storage, RetryingStorage)
    assert storage.inner == ObjectStorage(f"{scheme}://bucket/deep/table", {"a": "b"})
    assert storage.deadline_ms == 7
    with pytest.raises(OptionError):
        open_storage(f"{scheme}://user:password@bucket/table")


@pytest.mark.parametrize(
    ("scheme", "package", "extra"),
    [("gs", "obstore", "gcs"), ("abfss", "obstore", "azure"), ("hdfs", "hdfs_native", "hdfs")],
)
def test_a_missing_package_is_named(
    scheme: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StorageError, match=rf"for {scheme}://: {package} .* '\.\[{extra}\]'"):
        open_storage(f"{scheme}://bucket/t")


def test_a_process_that_was_forked_from_a_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_users", {("obstore", os.getpid() + 1)})
    storage = ObjectStorage("gs://forked/t", {"bearer_token": "t"})
    with pytest.raises(StorageError, match="forked from one that uses it"):
        storage.read("f")
    monkeypatch.setattr(connections, "_users", {("another", os.getpid() + 1)})
    with pytest.raises(UnavailableError):
        replace(storage, options={"bearer_token": "t", "base_url": "http://127.0.0.1:1"}).read("f")


@pytest.mark.parametrize(
    "message", ["no such host", "Configuration key: 'other' is not valid for store 'GCS'."]
)
def test_what_obstore_says_of_no_option_of_ours_stays(
    message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: object, **__: object) -> None:
        raise GenericError(message)

    monkeypatch.setattr("obstore.store.GCSStore", refusing)
    with pytest.raises(GenericError, match=message):
        clouds.connect("gs://b", {"bearer_token": "t"})


@pytest.mark.parametrize(
    ("url", "endpoint", "credentials"),
    [
        ("gs://b/t", "base_url", {"bearer_token": "hush-hush"}),
        ("abfss://c@a.dfs.core.windows.net/t", "endpoint", {"account_key": "aHVzaC1odXNo"}),
    ],
)
def test_a_server_that_does_not_answer_is_unavailable_in_time(
    url: str, endpoint: str, credentials: dict[str, str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = {**credentials, endpoint: place, "timeout": "200 ms"}
        with pytest.raises(UnavailableError, match=place) as caught:
            ObjectStorage(url, options).put_if_absent("f", b"x")
    assert not [text for text in credentials.values() if text in f"{caught.value!r}"]

"""Connections that were refused, and what messages show of the options that they were made with."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import fsspec
import pytest
from obstore.exceptions import GenericError

from hoodie_ds import HoodieTable
from hoodie_ds.errors import AccessDeniedError, StorageError
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.fsspec_storage import FsspecStorage
from tests.s3_server import S3Server
from tests.tables import TRIPS, found, trips


class _Vault(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Looks for a password once, when it is made, as the libraries of object stores do."""

    protocol = "vault"
    made = 0
    answer: Exception | None = None

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        type(self).made += 1
        self.open_to_us = os.environ.get("VAULT_PASSWORD") == "right"

    def cat_file(self, path: str, *args: object, **kwargs: object) -> bytes:
        if self.answer is not None:
            raise self.answer
        if not self.open_to_us:
            raise PermissionError(f"{path} is locked")
        return b"gold"


_tests = count()


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> FsspecStorage:
    fsspec.register_implementation("vault", _Vault, clobber=True)
    monkeypatch.setattr(_Vault, "made", 0)
    monkeypatch.delenv("VAULT_PASSWORD", raising=False)
    return FsspecStorage("vault://bank/t", {"test": f"{next(_tests)}"})  # no other's connection


def test_credentials_that_came_after_a_failed_try_were_ignored(
    vault: FsspecStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AccessDeniedError):
        vault.read("f")
    monkeypatch.setenv("VAULT_PASSWORD", "right")
    assert vault.read("f") == b"gold"
    assert vault.read("g") == b"gold"
    assert _Vault.made == 2


class NoCredentialsError(Exception):
    """Of botocore, by its name."""


@pytest.mark.parametrize(
    ("answer", "is_told"),
    [
        (NoCredentialsError("Unable to locate credentials"), True),
        (GenericError("Account must be specified"), True),
        (PermissionError("it is locked"), False),
        (ConnectionError("nobody there"), False),
    ],
)
def test_the_error_for_missing_credentials_said_not_where_to_give_them(
    vault: FsspecStorage, monkeypatch: pytest.MonkeyPatch, answer: Exception, is_told: bool
) -> None:
    monkeypatch.setattr(_Vault, "answer", answer)
    with pytest.raises(StorageError) as caught:
        vault.read("f")
    remedy = "; give credentials in the environment, or as options hoodie.py.storage.option.<name>"
    assert str(caught.value).endswith(remedy) == is_told


def test_a_connection_that_never_answered_is_replaced(
    vault: FsspecStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Vault, "answer", ConnectionError("nobody there"))
    for _ in range(2):
        with pytest.raises(StorageError):
            vault.read("f")
    assert _Vault.made == 2


@pytest.mark.parametrize("first", [None, FileNotFoundError()])
def test_a_connection_that_has_answered_outlives_a_failure(
    vault: FsspecStorage, monkeypatch: pytest.MonkeyPatch, first: Exception | None
) -> None:
    monkeypatch.setenv("VAULT_PASSWORD", "right")
    for answer in (first, ConnectionError("for now")):
        monkeypatch.setattr(_Vault, "answer", answer)
        try:
            vault.read("f")
        except StorageError:
            assert answer is not None
    assert _Vault.made == 1


def test_few_connections_are_kept(vault: FsspecStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT_PASSWORD", "right")

    def opened(users: Iterable[int]) -> int:
        before = _Vault.made
        for number in users:
            assert FsspecStorage("vault://bank/t", {"user": f"user{number}"}).read("f") == b"gold"
        return _Vault.made - before

    assert opened(range(40)) == 40
    assert opened(range(24, 40)) == 0
    assert opened([23]) == 1


def test_credentials_of_s3_may_come_late(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in s3.environment:
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    table = HoodieTable(f"s3://tables{tmp_path}", TRIPS)
    with pytest.raises(StorageError):
        table.upsert(trips(("a", "x", 1, 1.0)))
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    table.upsert(trips(("a", "x", 1, 1.0)))
    assert found(table) == [("a", "x", 1, 1.0)]


ENDPOINT = "http://storage.example.org:9000"


@pytest.mark.parametrize(
    ("options", "said", "shown"),
    [
        ({"secret": "x"}, "an unexpected answer", "an unexpected answer"),
        ({"secret": "pect"}, "an unexpected answer", "an unexpected answer"),
        ({"secret": "word"}, "'word' is wrong, word", "'***' is wrong, ***"),
        ({"token": "abcdefgh"}, "https://h/?t=xabcdefghx", "https://h/?t=x***x"),
        ({"a": "hushhush", "b": "hushhush2"}, "hushhush2 hushhush", "*** ***"),
        ({"endpoint_url": ENDPOINT}, f"no answer from {ENDPOINT}", f"no answer from {ENDPOINT}"),
        (
            {"client_kwargs": '{"region_name": "us-east-1", "aws_session_token": "hushhush"}'},
            "us-east-1 hushhush",
            "us-east-1 ***",
        ),
        ({"endpoint_url": "http://u:p@h.org"}, "no answer from http://u:p@h.org", "from ***"),
        ({"account": "hushhush", "bucket": "tables"}, "hushhush tables", "*** tables"),
    ],
)
def test_a_secret_was_cut_out_of_words_and_an_endpoint_hidden(
    vault: FsspecStorage,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
    said: str,
    shown: str,
) -> None:
    monkeypatch.setattr(_Vault, "answer", OSError(said))
    with pytest.raises(StorageError) as caught:
        open_storage("vault://bank/t", options, for_write=False).read("f")
    assert str(caught.value).endswith(shown)
    assert (caught.value.__cause__ is None) == (said != shown)

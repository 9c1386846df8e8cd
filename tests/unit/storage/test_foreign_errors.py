"""What the errors of libraries mean that answer with an HTTP status."""

from __future__ import annotations

import errno

import pytest
from obstore import exceptions

from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    OutOfSpaceError,
    StorageError,
    UnavailableError,
)
from hoodie_ds.storage.foreign_errors import meaning, shown


def answered(status: int, code: str = "Odd") -> Exception:
    """An error of botocore's, by default for a code that nobody knows."""
    botocore = pytest.importorskip("botocore.exceptions")
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = botocore.ClientError(answer, "PutObject")
    assert isinstance(error, Exception)
    return error


def test_an_upload_that_is_missing_may_have_been_completed() -> None:
    assert meaning(answered(404, "NoSuchUpload")) is UnavailableError


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, AccessDeniedError),
        (409, UnavailableError),
        (503, UnavailableError),
        (507, OutOfSpaceError),
        (418, StorageError),
    ],
)
def test_an_unknown_code_is_classified_by_its_status(status: int, kind: type[StorageError]) -> None:
    assert meaning(answered(status)) is kind


def test_the_status_of_a_wrapped_error_counts() -> None:
    wrapped = OSError(errno.EIO, "odd")
    wrapped.__cause__ = answered(503)
    assert meaning(wrapped) is UnavailableError


def test_expired_credentials_are_access_denied() -> None:
    wrapped = OSError(errno.EINVAL, "the provided token is malformed or otherwise invalid")
    wrapped.__cause__ = answered(400, "InvalidToken")
    assert meaning(wrapped) is AccessDeniedError


METADATA = "Error performing token request: Error performing GET http://169.254.169.254/token"
TOKENS = "Error performing token request: Error performing POST https://oauth2.example.org"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("AlreadyExistsError", "Server returned non-2xx status code: 409", AlreadyExistsError),
        ("PermissionDeniedError", "no", AccessDeniedError),
        ("UnauthenticatedError", "no", AccessDeniedError),
        ("GenericError", "non-2xx status code: 404 Not Found: no container", NotFoundError),
        ("GenericError", "non-2xx status code: 429 Too Many Requests", UnavailableError),
        (
            "GenericError",
            "Bulk delete request failed for k: Busy (code: 503)",
            UnavailableError,
        ),
        ("GenericError", "non-2xx status code: 418 I'm a teapot", StorageError),
        ("GenericError", "HTTP error: error sending request", UnavailableError),
        ("GenericError", 'failed to parse "soon" as Duration', StorageError),
        ("GenericError", "Account must be specified", AccessDeniedError),
        ("GenericError", "GCP credential error: Unable to open key.json", AccessDeniedError),
        ("GenericError", "Unable to decode service account file: external", AccessDeniedError),
        ("GenericError", f"{METADATA} - HTTP error: error sending request", AccessDeniedError),
        ("GenericError", f"{METADATA} - non-2xx status code: 404 Not Found", AccessDeniedError),
        ("GenericError", f"{METADATA} - non-2xx status code: 503 Busy", UnavailableError),
        ("GenericError", f"{TOKENS} - non-2xx status code: 400 Bad Request", AccessDeniedError),
        ("GenericError", f"{TOKENS} - HTTP error: error sending request", UnavailableError),
    ],
)
def test_errors_of_obstore(name: str, text: str, kind: type[StorageError]) -> None:
    assert meaning(getattr(exceptions, name)(text)) is kind


def test_what_a_library_dumps_is_not_shown() -> None:
    dumped = FileNotFoundError("no f:\n <Code>\n\n\nDebug source:\nNotFound {\n    path: f\n}")
    assert shown(dumped) == "FileNotFoundError: no f: <Code>"
    assert shown(ValueError("two\nlines")) == "ValueError: two\nlines"

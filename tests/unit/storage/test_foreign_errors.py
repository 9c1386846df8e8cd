"""What the errors of libraries mean that answer with an HTTP status."""

from __future__ import annotations

import errno

import pytest

from hoodie_ds.errors import AccessDeniedError, OutOfSpaceError, StorageError, UnavailableError
from hoodie_ds.storage.foreign_errors import meaning


def answered(status: int, code: str = "Odd") -> Exception:
    """An error of botocore's, by default for a code that nobody knows."""
    botocore = pytest.importorskip("botocore.exceptions")
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = botocore.ClientError(answer, "PutObject")
    assert isinstance(error, Exception)
    return error


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

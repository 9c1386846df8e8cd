"""What the errors of file system libraries mean.

Each library has its own exceptions, and the user chooses which libraries are installed, so types
are recognised by name and server responses by their HTTP status.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from typing import Final

from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    OutOfSpaceError,
    StorageError,
    UnavailableError,
)

_TYPES: Final[tuple[tuple[type[Exception], type[StorageError]], ...]] = (
    (FileNotFoundError, NotFoundError),
    (NotADirectoryError, NotFoundError),
    (FileExistsError, AlreadyExistsError),
    (PermissionError, AccessDeniedError),
    (TimeoutError, UnavailableError),
    (ConnectionError, UnavailableError),
    (OutOfSpaceError, OutOfSpaceError),
)
# Of botocore and aiohttp, and what their errors derive from.
_NAMES: Final = {
    "NoCredentialsError": AccessDeniedError,
    "PartialCredentialsError": AccessDeniedError,
    "HTTPClientError": UnavailableError,
    "ConnectionError": UnavailableError,
    "IncompleteReadError": UnavailableError,
    "ClientConnectionError": UnavailableError,
    "ClientPayloadError": UnavailableError,
}
_REFUSED_TOKENS: Final = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
"""S3's codes for temporary credentials that are no longer valid; their status is 400."""

_STATUSES: Final = {
    401: AccessDeniedError,
    403: AccessDeniedError,
    404: NotFoundError,
    408: UnavailableError,
    409: UnavailableError,  # S3's answer to a conditional put while another is under way
    425: UnavailableError,
    429: UnavailableError,
    500: UnavailableError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
    507: OutOfSpaceError,
}
_CODES: Final = {
    "AccessDenied": 403,
    "InternalError": 500,
    "ServiceUnavailable": 503,
    "SlowDown": 503,
}
"""The status that S3 sends with a code that concerns a single key."""

_OBSTORE: Final = "obstore.exceptions"
_OBSTORE_NAMES: Final = {
    "AlreadyExistsError": AlreadyExistsError,
    "PreconditionError": AlreadyExistsError,  # of a replace: the file has another version
    "PermissionDeniedError": AccessDeniedError,
    "UnauthenticatedError": AccessDeniedError,
}
_OBSTORE_STATUS: Final = re.compile(r"(?:status code: |\(code: )(\d{3})")
_OBSTORE_CREDENTIALS: Final = re.compile(
    "token request|credential error|service account|Invalid Access Key|Account must be specified"
)
_MISSING: Final = re.compile(f"NoCredentials|PartialCredentials|{_OBSTORE_CREDENTIALS.pattern}")
_REMEDY: Final = (
    "give credentials in the environment, or as options hoodie.py.storage.option.<name>"
)
_METADATA_SERVER: Final = "://169.254.169.254/"
"""A machine outside the cloud has no server that would answer without credentials."""

_NUMBERS: Final = {
    errno.ENOSPC: OutOfSpaceError,
    errno.EDQUOT: OutOfSpaceError,
    errno.EROFS: AccessDeniedError,
    errno.EBUSY: UnavailableError,  # s3fs' number for 503
    getattr(errno, "EREMOTEIO", errno.EIO): UnavailableError,  # s3fs' number for 500
    errno.ENETUNREACH: UnavailableError,
    errno.EHOSTUNREACH: UnavailableError,
}


class RefusedKeyError(Exception):
    """A server's answer about one of many keys, with the attributes of botocore's errors."""

    def __init__(self, answer: Mapping[str, object]) -> None:
        code = str(answer.get("Code"))
        super().__init__(f"{code}: {answer.get('Message')}")
        status = _CODES.get(code)
        self.response = {"Error": dict(answer), "ResponseMetadata": {"HTTPStatusCode": status}}


def meaning(error: Exception) -> type[StorageError]:
    """Return this library's error for an error of another library."""
    chain = list(chained(error))
    # A missing multipart upload was aborted, or completed by a try whose answer was lost.
    if is_missing_upload(error):
        return UnavailableError
    if _codes(error) & _REFUSED_TOKENS:
        return AccessDeniedError
    for link in chain:
        found = _meaning_alone(link)
        if found is not None:
            return found
    return StorageError


def is_missing_upload(error: BaseException) -> bool:
    """Whether S3 knows no multipart upload, or no longer."""
    return "NoSuchUpload" in _codes(error)


def shown(error: BaseException) -> str:
    """Return an error's type and message in one line, without obstore's dump of its internals."""
    text, dump, _ = str(error).partition("\n\nDebug source:")
    return f"{type(error).__name__}: {' '.join(text.split()) if dump else text}"


def remedy(error: Exception) -> str:
    """Return what to add to the message of an error where credentials are missing, else nothing."""
    if meaning(error) is AccessDeniedError and _MISSING.search(shown(error)):
        return f"; {_REMEDY}"
    return ""


def chained(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, what it was raised from, and so on."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _meaning_alone(error: BaseException) -> type[StorageError] | None:
    for theirs, ours in _TYPES:
        if isinstance(error, theirs):
            return ours
    if type(error).__module__ == _OBSTORE:
        return _meaning_of_obstore(error)
    status = _answer(error, "ResponseMetadata").get("HTTPStatusCode")
    if isinstance(status, int) and status in _STATUSES:
        return _STATUSES[status]
    number = error.errno if isinstance(error, OSError) else None
    if number in _NUMBERS:
        return _NUMBERS[number]
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((_NAMES[name] for name in names if name in _NAMES), None)


def _meaning_of_obstore(error: BaseException) -> type[StorageError] | None:
    """Return the meaning of an error whose status is only in its message."""
    name, text = type(error).__name__, shown(error)
    if name in _OBSTORE_NAMES:
        return _OBSTORE_NAMES[name]
    answer, found = _OBSTORE_STATUS.search(text), None
    if answer is not None:
        found = _STATUSES.get(int(answer[1]))
    elif "HTTP error" in text and _METADATA_SERVER not in text:
        found = UnavailableError
    if found is not UnavailableError and _OBSTORE_CREDENTIALS.search(text):
        return AccessDeniedError
    return found


def _codes(error: BaseException) -> set[str]:
    """Return S3's codes of an error and of what it was raised from."""
    return {str(_answer(link, "Error").get("Code")) for link in chained(error)}


def _answer(error: BaseException, part: str) -> dict[str, object]:
    """Return a part of the server's response that botocore attaches to its errors."""
    response = getattr(error, "response", None)
    found = response.get(part) if isinstance(response, dict) else None
    return found if isinstance(found, dict) else {}

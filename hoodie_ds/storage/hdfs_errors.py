"""What the errors of hdfs_native mean: it has few types, and the rest in their messages."""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.errors import OutOfSpaceError

_REMOTE: Final = re.compile(r'RPCError\("(?:\w+\.)*([\w$]+)", "(.*)"\)', re.DOTALL)
_STACK: Final = re.compile(r"(?:\n|\\n)(?:\t|\\t)at ")

_DENIED: Final = (
    "grant it, or write as another user: that of the Kerberos ticket or, without Kerberos, of "
    "HADOOP_USER_NAME"
)
_TICKET: Final = (
    "let kinit make a ticket, whose cache KRB5CCNAME names, or give the options "
    "hoodie.py.storage.option.kerberos_principal and kerberos_keytab, a file on each node"
)
_NAME: Final = (
    "HDFS takes no ':' in names; for partition paths set "
    "hoodie.datasource.write.partitionpath.urlencode=true"
)
_PLACE: Final = (
    "give the NameNode as host:port, or let HADOOP_CONF_DIR name the folder of the core-site.xml "
    "and hdfs-site.xml that know the nameservice"
)
_QUOTA: Final = "raise the quota, or delete what nobody needs"
_Meaning = tuple[type[Exception], str]
_EXCEPTIONS: Final[dict[str, _Meaning]] = {
    "AccessControlException": (PermissionError, _DENIED),
    "AuthorizationException": (PermissionError, _DENIED),
    "SaslException": (PermissionError, _DENIED),
    "SecretManager$InvalidToken": (PermissionError, _DENIED),
    "InvalidPathException": (ValueError, _NAME),
    "NSQuotaExceededException": (OutOfSpaceError, _QUOTA),
    "DSQuotaExceededException": (OutOfSpaceError, _QUOTA),
    "QuotaByStorageTypeExceededException": (OutOfSpaceError, _QUOTA),
    "SafeModeException": (ConnectionError, ""),
    "StandbyException": (ConnectionError, ""),
    "RetriableException": (ConnectionError, ""),
}
"""Exceptions of the NameNode, and what is to be done about them."""

_VARIANTS: Final[dict[str, _Meaning]] = {
    "InvalidArgument": (ValueError, _PLACE),
    "SASLError": (PermissionError, _DENIED),
    "GSSAPIError": (PermissionError, _TICKET),
    "NoSASLMechanism": (PermissionError, _DENIED),
    "DataTransferError": (ConnectionError, ""),
    "ChecksumError": (ConnectionError, ""),
    "BlocksNotFound": (ConnectionError, ""),
    "OperationFailed": (ConnectionError, ""),
}
"""Errors of the client itself."""

_NO_FOLDER: Final = "(is not a directory)"
"""In the NameNode's answer to a path below a file, with whatever exception."""

_NO_NODES: Final = "could only be written to 0 of"
"""The NameNode's answer if all DataNodes are full or away."""


def plain(error: Exception) -> Exception:
    """Return one of Python's errors that means the same, without the stack of the NameNode."""
    text = str(error)
    if isinstance(error, OSError):
        kind = ConnectionError if type(error) is OSError else type(error)
        return kind(_STACK.split(text, maxsplit=1)[0])
    remote = _REMOTE.search(text)
    if remote is None:
        return _known(_VARIANTS, text.partition("(")[0], text)
    name, message = remote[1], _STACK.split(remote[2], maxsplit=1)[0]
    if _NO_FOLDER in message:
        return NotADirectoryError(message)
    if _NO_NODES in message:
        return ConnectionError(message)
    return _known(_EXCEPTIONS, name, f"{name}: {message}")


def _known(errors: dict[str, _Meaning], name: str, message: str) -> Exception:
    kind, remedy = errors.get(name, (ValueError, ""))
    if remedy == _NAME and ":" not in message.partition(": ")[2]:
        remedy = ""
    return kind(f"{message}; {remedy}" if remedy else message)

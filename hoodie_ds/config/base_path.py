"""What a table's base path may look like. Invariant: one that passes holds no credentials.

So the base path, unlike storage options, may appear in messages, logs and metadata.
"""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.option import Kind
from hoodie_ds.errors import OptionError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # one letter would be a Windows drive
_FOREIGN: Final = re.compile(r"[^/\\\\]*:(?=//)|[A-Za-z][A-Za-z0-9+.-]*:(?=[/\\\\])")
_UNUSABLE: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def scheme_of(base_path: str) -> str:
    """Return the URL scheme in lower case; ``file`` for a plain path."""
    match = _SCHEME.match(base_path)
    remote = match is not None and base_path[match.end() :].startswith("//")
    local = match is not None and match.group(1).lower() == "file"
    return match.group(1).lower() if match is not None and (remote or local) else "file"


def check_base_path(text: str) -> str:
    """Return a local path or URL without trailing slashes, or raise `OptionError`.

    Refused are control characters, credentials and chained file systems; the message does not
    repeat what may be secret. Several slashes in a row are one in a URL, as for Hadoop.
    """
    scheme = scheme_of(text)
    shown = text if scheme == "file" and "::" not in text else f"{scheme}://***"
    if not text.strip() or _UNUSABLE.search(text):
        raise OptionError("path", shown, "give the table's folder, without control characters")
    if "::" in text and "://" in text:
        raise OptionError("path", shown, "chained file systems are not accepted")
    if scheme == "file":
        _check_local(text)
        return text.rstrip("/") or "/"
    _, _, rest = text.partition("://")
    user, _, _ = rest.split("/", 1)[0].rpartition("@")
    if ":" in user or re.search(r"[?#]", rest):
        raise OptionError(
            "path",
            shown,
            "a URL with credentials, '?' or '#' is not accepted; "
            "give credentials as hoodie.py.storage.option.<name>",
        )
    if not rest.strip("/"):
        raise OptionError("path", shown, "the URL names no folder")
    place, _, folder = rest.partition("/")
    names = [name for name in folder.split("/") if name]
    if "." in names or ".." in names:  # Hadoop would follow them, and an object store would not
        raise OptionError("path", shown, "a URL with '.' or '..' as a folder is not accepted")
    return f"{scheme}://{'/'.join((place, *names))}"


def _check_local(text: str) -> None:
    """Refuse what was not meant for a folder of this machine, nor is one that people name so."""
    match = _FOREIGN.match(text)
    if match is not None and not text.lower().startswith("file:"):
        raise OptionError(
            "path",
            text,
            f"it would be a local folder named {match.group()!r}; write a URL such as "
            "s3://bucket/folder, or './' before such a folder",
        )


BASE_PATH: Final = Kind("the table's folder, as a path or URL", check_base_path)
"""Kind of the option ``path``."""

"""From a URL of Google Cloud Storage or Azure to a store of obstore."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from hoodie_ds.errors import StorageError
from hoodie_ds.extras import remedy

CLOUDS: Final = {"gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
"""Extras that bring obstore, by the schemes of their clouds."""

_DEFAULTS: Final = {"timeout": "2 minutes", "allow_http": "true"}
"""A request may send a whole data file, and obstore's limit is 30 seconds."""

_NO_RETRIES: Final = {"max_retries": 0}
"""obstore would repeat a put whose answer was lost, and report its own file as another's."""

_PUBLIC: Final = ".core.windows.net"

_users: set[int] = set()
"""This process, and those that it was forked from, if they use obstore."""


def check_installed(scheme: str) -> None:
    """Raise a `StorageError` that says what to install if obstore is missing."""
    try:
        import obstore  # noqa: F401
    except ImportError as error:
        raise StorageError(
            f"no file system for {scheme}://: obstore is not installed: {remedy(CLOUDS[scheme])}"
        ) from error


def connect(place: str, options: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Return the store of a bucket or container, such as ``abfss://c@account.dfs.core.windows.net``.

    What the options do not say, obstore takes from the environment, as its clouds' own tools do.
    """
    from obstore.store import AzureStore, GCSStore

    if _users and os.getpid() not in _users:
        raise StorageError(
            "obstore would hang in this process, which was forked from one that uses it: start "
            "processes by spawn or forkserver"
        )
    _users.add(os.getpid())
    scheme, _, authority = place.partition("://")
    if CLOUDS[scheme] == "gcs":
        return GCSStore(authority, config={**_DEFAULTS, **options}, retry_config=_NO_RETRIES)
    container, at, host = authority.rpartition("@")
    config = {**_DEFAULTS, **(_account(host) if at else {}), **options}
    return AzureStore(container if at else host, config=config, retry_config=_NO_RETRIES)


def _account(host: str) -> dict[str, str]:
    """Return what an account's host says: its name, and where a sovereign cloud has its blobs."""
    account = {"account_name": host.partition(".")[0]}
    if host.endswith(_PUBLIC):
        return account
    return {**account, "endpoint": f"https://{host.replace('.dfs.', '.blob.', 1)}"}

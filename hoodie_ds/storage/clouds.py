"""From a URL of Google Cloud Storage or Azure to a store of obstore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hoodie_ds.storage.connections import refuse_fork

CLOUDS: Final = {"gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
"""Extras that bring obstore, by the schemes of their clouds."""

_DEFAULTS: Final = {"timeout": "2 minutes", "allow_http": "true"}
"""A request may send a whole data file, and obstore's limit is 30 seconds."""

_NO_RETRIES: Final = {"max_retries": 0}
"""obstore would repeat a put whose answer was lost, and report its own file as another's."""

_PUBLIC: Final = ".core.windows.net"


def connect(place: str, options: Mapping[str, str], *, repeats: bool = False) -> Any:  # noqa: ANN401
    """Return the store of a bucket or container, such as ``abfss://c@account.dfs.core.windows.net``.

    What the options do not say, obstore takes from the environment, as its clouds' own tools do. A
    store that `repeats` sends requests again for up to three minutes.
    """
    from obstore.store import AzureStore, GCSStore

    refuse_fork("obstore")
    retries = None if repeats else _NO_RETRIES
    scheme, _, authority = place.partition("://")
    if CLOUDS[scheme] == "gcs":
        return GCSStore(authority, config={**_DEFAULTS, **options}, retry_config=retries)
    container, at, host = authority.rpartition("@")
    config = {**_DEFAULTS, **(_account(host) if at else {}), **options}
    return AzureStore(container if at else host, config=config, retry_config=retries)


def _account(host: str) -> dict[str, str]:
    """Return what an account's host says: its name, and where a sovereign cloud has its blobs."""
    account = {"account_name": host.partition(".")[0]}
    if host.endswith(_PUBLIC):
        return account
    return {**account, "endpoint": f"https://{host.replace('.dfs.', '.blob.', 1)}"}

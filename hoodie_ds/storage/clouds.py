"""From a URL of Google Cloud Storage or Azure to a store of obstore."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from hoodie_ds.storage.connections import refuse_fork, refused

CLOUDS: Final = {"gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
"""Extras that bring obstore, by the schemes of their clouds."""

_DEFAULTS: Final = {"timeout": "2 minutes", "allow_http": "true"}
"""A request may send a whole data file, and obstore's limit is 30 seconds."""

_NO_RETRIES: Final = {"max_retries": 0}
"""obstore would repeat a put whose answer was lost, and report its own file as another's."""

_REFUSED: Final = re.compile(
    r"Configuration key: '(?P<name>.*)' is not valid|"
    r"failed to parse \"(?P<value>.*)\" as (?P<kind>\w+)"
)
"""What obstore says of options."""

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
        config = {**_DEFAULTS, **options}
        return _opened(GCSStore, authority, options, config=config, retry_config=retries)
    container, at, host = authority.rpartition("@")
    config = {**_DEFAULTS, **(_account(host) if at else {}), **options}
    bucket = container if at else host
    return _opened(AzureStore, bucket, options, config=config, retry_config=retries)


def _opened(
    store: Callable[..., Any], bucket: str, options: Mapping[str, str], **arguments: object
) -> Any:  # noqa: ANN401
    """Return a store, or raise the error that names the option that obstore refuses."""
    from obstore.exceptions import BaseError

    try:
        return store(bucket, **arguments)
    except BaseError as error:
        found = _REFUSED.search(str(error))
        if found is None:
            raise
        unknown = f"{store.__name__} of obstore knows no such option"
        for name, value in options.items():
            if name == found["name"]:
                raise refused(name, options, unknown) from None
            if value == found["value"]:
                raise refused(name, options, f"give a {found['kind'].lower()}") from None
        raise


def _account(host: str) -> dict[str, str]:
    """Return what an account's host says: its name, and where a sovereign cloud has its blobs."""
    account = {"account_name": host.partition(".")[0]}
    if host.endswith(_PUBLIC):
        return account
    return {**account, "endpoint": f"https://{host.replace('.dfs.', '.blob.', 1)}"}

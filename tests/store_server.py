"""What the tests know of the server of an object store, whatever speaks to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoreServer:
    """Where a server listens, and how to reach it."""

    endpoint: str

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message, log line or file may hold."""
        raise NotImplementedError

    def url(self, folder: object) -> str:
        """The base path of a table in a folder of the bucket ``tables``."""
        raise NotImplementedError

    def http_url(self, folder: object) -> str:
        """The same as plain requests have it, with what signs them."""
        return f"{self.endpoint}/tables{folder}"

    @property
    def options(self) -> dict[str, str]:
        """Storage options, without the prefix of the option keys."""
        raise NotImplementedError

    @property
    def table_options(self) -> dict[str, str]:
        """The same as options of a table."""
        return {f"hoodie.py.storage.option.{name}": text for name, text in self.options.items()}

    @property
    def environment(self) -> dict[str, str]:
        """The same as variables of the environment."""
        raise NotImplementedError

    @property
    def rust_options(self) -> dict[str, str] | None:
        """The same for hudi-rs; None if it does not know such a storage."""
        raise NotImplementedError

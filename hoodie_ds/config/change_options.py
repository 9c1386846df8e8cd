"""What a new table keeps of its changes, as the user said."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.enums import SupplementalLogging
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.options import changes as keys


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOptions:
    """Whether change data capture is on.

    Parameters
    ----------
    enabled : bool or None
        Whether the table keeps change data; None where the user did not say.
    logging : SupplementalLogging or None
        What is kept of each change; None where the user did not say.
    """

    enabled: bool | None = None
    logging: SupplementalLogging | None = None

    @classmethod
    def of(cls, given: GivenOptions) -> ChangeOptions:
        """Take the options out of those given, which note what is wrong."""
        return cls(
            enabled=given.get(keys.CDC_ENABLED), logging=given.get(keys.SUPPLEMENTAL_LOGGING)
        )

"""The table services that may follow a commit, and what says that one of them is due."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie_ds.config.service_switches import Service
from hoodie_ds.services.after_commit import FollowUp

SERVICES: Final[Mapping[Service, FollowUp]] = {}
"""What does each service, if it is due."""

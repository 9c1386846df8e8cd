"""Table services by hand, each call in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from hoodie_ds import HoodieTable
from hoodie_ds.environment import Clock
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import SimClock, SimIds
from tests.tables import KEY, TYPE

OFTEN: Final = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
}
"""Services find something to do after a few commits."""

GIVING_WAY: Final = {
    "hoodie.clustering.updates.strategy": (
        "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    ),
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
"""A write to what a killed clustering was to rewrite takes the clustering back."""


def services_of(options: Mapping[str, str]) -> list[str]:
    """Methods of the services that a table may have which never change its rows."""
    found = ["clean", "archive"]
    if options.get(TYPE) == "MERGE_ON_READ":
        found.append("compact")
    if "hoodie.index.type" in options or KEY not in options:
        found.append("cluster")
    return found


def keeper(
    storage: Any, options: Mapping[str, str], name: str, clock: Clock | None = None
) -> HoodieTable:
    """A table whose services are run by hand."""
    return HoodieTable(
        storage.root,
        {**options, **OFTEN},
        storage=cast(Storage, storage),
        clock=clock or SimClock(),
        ids=SimIds(name),
    )

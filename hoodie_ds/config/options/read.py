"""The options that a read obeys; the option table is made from `READ_OPTIONS`."""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.enums import QueryType
from hoodie_ds.config.option import Kind, Option
from hoodie_ds.config.options.storage import RETRY_DEADLINE_MS, VERIFY_CHECKSUMS
from hoodie_ds.config.options.write import MERGE_HOOK, PATH

QUERY_TYPE: Final = Option(
    "hoodie.datasource.query.type",
    Kind(
        "snapshot (read_optimized and incremental are not supported yet)",
        # The second is Hudi's older name for it.
        lambda text: QueryType.SNAPSHOT if text.lower() in ("snapshot", "realtime") else None,
    ),
    "What a read returns.",
    QueryType.SNAPSHOT,
    aliases=("hoodie.datasource.view.type",),
)

READ_OPTIONS: Final[tuple[Option[object], ...]] = (
    PATH,
    QUERY_TYPE,
    MERGE_HOOK,
    VERIFY_CHECKSUMS,
    RETRY_DEADLINE_MS,
)
"""Every option that a read obeys, in the order of the option table."""

"""The body of ``<time>.compaction.requested`` and ``<time>.logcompaction.requested``: a plan.

Written by other engines (Hudi's ``HoodieCompactionPlan``); here it is only read.
"""

from __future__ import annotations

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record


def compacted_groups(data: bytes, path: str) -> frozenset[tuple[str, str]]:
    """Return the partition paths and file ids of the file slices that a plan names.

    Raises
    ------
    CorruptFileError
        The bytes are no such plan; names `path`.
    """
    plan = read_record(data, path)
    try:
        operations = plan["operations"] or ()
        return frozenset((one["partitionPath"] or "", str(one["fileId"])) for one in operations)
    except (KeyError, TypeError) as error:
        raise CorruptFileError(f"{path} is not the plan of a compaction: {error!r}") from error

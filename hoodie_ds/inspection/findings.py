"""What `verify` finds, by kind and severity."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from hoodie_ds.errors import CorruptFileError, HoodieError


class Severity(str, Enum):
    """How bad a finding is."""

    DAMAGE = "damage"
    REMARK = "remark"


class Kind(str, Enum):
    """What was found."""

    DAMAGED_INSTANT = "damaged-instant"
    MISSING_FILE = "missing-file"
    WRONG_SIZE = "wrong-size"
    DAMAGED_FILE = "damaged-file"
    ROW_COUNT = "row-count"
    WRONG_PARTITION = "wrong-partition"
    DUPLICATE_KEY = "duplicate-key"
    TWO_GROUPS_OF_A_BUCKET = "two-groups-of-a-bucket"
    WRONG_BUCKET = "wrong-bucket"
    BLOOM_DENIES_KEY = "bloom-denies-key"
    REPLAY_GUARD = "replay-guard"
    METADATA_TABLE = "metadata-table"
    NOT_CHECKED = "not-checked"
    ORPHAN = "orphan"


_REMARKS = frozenset({Kind.ORPHAN})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found, with the remedy that errors name for the same damage.

    An orphan is a remark, all else damage.
    """

    kind: Kind
    where: str  # path of a file, or a file group, partition or query
    message: str
    remedy: str
    severity: Severity = field(init=False)

    @classmethod
    def of(cls, kind: Kind, where: str, error: HoodieError) -> Finding:
        """Return the finding of an error; most have the remedy after their first semicolon."""
        if isinstance(error, CorruptFileError):
            return cls(kind, where, error.damage, error.remedy)
        message, _, remedy = str(error).partition("; ")
        return cls(kind, where, message, remedy)

    def __post_init__(self) -> None:
        severity = Severity.REMARK if self.kind in _REMARKS else Severity.DAMAGE
        object.__setattr__(self, "severity", severity)

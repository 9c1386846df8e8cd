"""What a read was asked for, parsed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hoodie_ds.config.enums import QueryType
from hoodie_ds.config.given_options import GivenOptions, storage_options
from hoodie_ds.config.options.read import QUERY_TYPE
from hoodie_ds.config.options.restricted import BOTH_RESTRICTED, READ_RESTRICTED
from hoodie_ds.config.options.storage import RETRY_DEADLINE_MS, VERIFY_CHECKSUMS
from hoodie_ds.config.options.write import MERGE_HOOK, PATH
from hoodie_ds.errors import OptionError


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read.

    Parameters
    ----------
    base_path : str
        The table's folder; never holds credentials.
    query_type : QueryType
        What to return; only snapshots in this release.
    storage_options : mapping of str to str
        For the file system. Values are secrets and do not appear in the representation.
    merge_hook : str or callable, optional
        What merges base and log files of a table with merge mode CUSTOM, or its import path.
    verify_checksums : bool
        Whether data files are compared with the checksums of the commits that wrote them.
    storage_retry_ms : int
        How long an operation of a remote storage is tried again.
    """

    base_path: str
    query_type: QueryType = QueryType.SNAPSHOT
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    merge_hook: str | Callable[..., object] | None = None
    verify_checksums: bool = True
    storage_retry_ms: int = 60_000

    @classmethod
    def parse(cls, raw: Mapping[str, object]) -> ReadOptions:
        """Return the options that raw keys and texts mean.

        Parameters
        ----------
        raw : mapping of str to str
            As Spark or the user gave them; keys in any letter case. Options for writes pass.

        Returns
        -------
        ReadOptions

        Raises
        ------
        OptionError
            A key is unknown, given twice or missing, or a value is malformed or asks for something
            that is not supported yet; one error tells all that is wrong.
        """
        given = GivenOptions.collect(raw)
        given.refuse_restricted(READ_RESTRICTED)
        given.refuse_restricted(BOTH_RESTRICTED)
        base_path = given.get(PATH)
        if not given.written(PATH):
            given.refuse(OptionError(PATH.key, None, "give the table's folder"))
        options = cls(
            base_path or "",
            given.get_or_default(QUERY_TYPE),
            storage_options(given),
            given.get(MERGE_HOOK),
            given.get_or_default(VERIFY_CHECKSUMS),
            given.get_or_default(RETRY_DEADLINE_MS),
        )
        given.check()
        given.warn()
        return options

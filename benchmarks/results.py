"""One result of a benchmark as a JSON line, which ``report.py`` reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds.formats.avro.schema import normalise_schema


def emit(
    work: str,
    seconds: float,
    *,
    against: str | None = None,
    goal: float | None = None,
    **more: object,
) -> None:
    """Print a figure.

    Parameters
    ----------
    work : str
        What was measured; the report takes the median of all figures of one name.
    seconds : float
        The figure; where `work` names another unit, in that one.
    against : str, optional
        The work of the same run that this one is put in relation to.
    goal : float, optional
        The ratio to `against` that is aimed at, at most; without `against`, of the figure itself.
    more : object
        Whatever else is worth keeping, such as the round.
    """
    line = {"work": work, "seconds": round(seconds, 5), "against": against, "goal": goal, **more}
    sys.stdout.write(json.dumps({k: v for k, v in line.items() if v is not None}) + "\n")
    sys.stdout.flush()


def lineitem_rows(lineitem: Path, count: int) -> pa.Table:
    """Return the first rows of TPC-H lineitem, without string views, which have no kernels."""
    file = lineitem if lineitem.is_file() else next(lineitem.glob("*.parquet"))
    rows = pa.Table.from_batches(pq.ParquetFile(file).iter_batches(1 << 20)).slice(0, count)
    return rows.cast(normalise_schema(rows.schema)).combine_chunks()

"""What a format is, and what reading damaged bytes may come to.

A format's ``read`` is given damaged bytes. It returns if they were read, asserts what can be known
of the rows, and otherwise raises a `HoodieError`, which has to say which file is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from hoodie_ds.errors import HoodieError
from tests.hostile import seeds as s
from tests.hostile.mutations import (
    damaged,
)
from tests.hostile.seeds import Seed

FILE = "a/file-of-the-table"
"""What parsers are told their input is."""
MAGIC_BYTES = 8


@dataclass(frozen=True)
class Format:
    """A format.

    Parameters
    ----------
    seeds : callable
        Files as they were written.
    mutate : callable
        From a random source, a seed and all seeds to damaged bytes.
    read : callable
        See above.
    named_by : str
        What an error says of the file: its name by default, a blank where ``read`` looks itself.
    is_refused : bool
        Whether some inputs have to be refused; others are to be passed over.
    """

    seeds: Callable[[], Sequence[Seed]]
    mutate: Callable[[Random, Seed, Sequence[bytes]], bytes]
    read: Callable[[Seed, bytes], None]
    named_by: str = ""
    is_refused: bool = True


def must_name(error: HoodieError, *texts: str) -> None:
    """Fail unless the error mentions one of some texts."""
    if not any(text in str(error) for text in texts):
        raise AssertionError(f"{type(error).__name__} does not name {texts}: {error}")


def either(
    *ways: Callable[[Random, bytes], bytes],
) -> Callable[[Random, Seed, Sequence[bytes]], bytes]:
    """Bytes damaged blindly, or one of some ways that keep to the structure."""

    def mutate(rng: Random, seed: Seed, others: Sequence[bytes]) -> bytes:
        way = rng.choice((None, *ways))
        return damaged(rng, seed.data, others) if way is None else way(rng, seed.data)

    return mutate


def tail_damaged(rng: Random, data: bytes) -> bytes:
    """Damage near the end, where Parquet keeps what it says of the rest."""
    return damaged(rng, data, tail=min(len(data), rng.choice((8, 64, 1000, 4000))))


# Whole tables: right rows, or an error; and after that a write.


def read_table(seed: Seed, data: bytes) -> None:
    found = s.rows_of(seed.table(data))
    assert found == seed.rows or not seed.ours, "other rows"


def read_any(seed: Seed, data: bytes) -> None:
    """Rows may be others: nothing in the table says what they ought to be."""
    s.rows_of(seed.table(data))


def write_on(seed: Seed, data: bytes) -> None:
    """A write to such a table, which may be refused."""
    table = seed.table(data)
    try:
        if seed.ours:
            table.upsert(s.MORE)
        else:
            rows = table.read()
            table.upsert(rows.select([n for n in rows.column_names if not n.startswith("_hoodie")]))
    except HoodieError:
        return
    s.rows_of(table)

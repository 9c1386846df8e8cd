"""Merge hooks for the suites, told as a user would write them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.record.merge.merge_hook import Merged

HOOK = "hoodie.py.merge.hook"
MODE = "hoodie.write.record.merge.mode"


def add(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
    """Fares add up; a sum of nothing is no row."""
    fare = pc.add(pc.fill_null(old["fare"], 0.0), new["fare"])
    return Merged(new.set_column(new.column_names.index("fare"), "fare", fare), pc.equal(fare, 0.0))


def fill(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
    """A new row without a fare keeps the old one."""
    fare = pc.coalesce(new["fare"], old["fare"])
    return Merged(new.set_column(new.column_names.index("fare"), "fare", fare))


def chain(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
    """Texts are chained; the first one of a key gets a mark."""
    before = pc.if_else(no_old, "^", old["v"])
    return Merged(new.set_column(0, "v", pc.binary_join_element_wise(before, new["v"], "")))


def lowers(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
    """A fare below zero is a change of an old row."""
    assert not pc.any(pc.and_(no_old, pc.less(new["fare"], 0.0))).as_py()
    return Merged(new)


def fails(old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
    raise KeyError("no such thing")


not_callable = 7

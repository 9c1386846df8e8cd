"""Test kit for sinks and tables: faults at every storage operation, time and ids under control.

For tests of pipelines under failures of storage or of a process; this library's own suite uses it
too. It needs no test framework.

>>> from hoodie_ds.testing import MemoryStorage, SimClock, SimIds, check_table, sweep
>>> def write(storage):
...     table = HoodieTable(storage.root, opts, storage=storage, clock=SimClock(), ids=SimIds())
...     table.upsert(rows)
>>> def check(left, raised):
...     assert check_table(left.files) == []
>>> runs = sweep(MemoryStorage(), write, check)
"""

from hoodie_ds.testing.checker import check_table
from hoodie_ds.testing.fault import (
    ANOMALIES,
    MUTATING,
    Effect,
    Fault,
    Kind,
    Operation,
)
from hoodie_ds.testing.faulty_storage import FaultyStorage, Recorder
from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.testing.simulated import (
    InlineExecutor,
    SimClock,
    SimIds,
    SimulatedCrash,
    forget_process,
    one_thread,
)
from hoodie_ds.testing.sweep import (
    CRASHES,
    ERRORS,
    SweepError,
    fault_points,
    sweep,
    sweep_pairs,
)

__all__ = [
    "ANOMALIES",
    "CRASHES",
    "ERRORS",
    "MUTATING",
    "Effect",
    "Fault",
    "FaultyStorage",
    "InlineExecutor",
    "Kind",
    "MemoryStorage",
    "Operation",
    "Recorder",
    "SimClock",
    "SimIds",
    "SimulatedCrash",
    "SweepError",
    "check_table",
    "fault_points",
    "forget_process",
    "one_thread",
    "sweep",
    "sweep_pairs",
]

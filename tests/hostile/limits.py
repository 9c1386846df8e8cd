"""How long an input may take, and how much memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MOST_SECONDS = 5.0
MOST_BYTES = 200 << 20

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@contextmanager
def within_limits() -> Iterator[None]:
    """Fail if the block takes too long, or more memory at any time than before it."""
    before = _reset_peak()
    start = time.monotonic()
    try:
        yield
    finally:
        seconds, grown = time.monotonic() - start, _peak() - before
        problem = f"{seconds:.1f} s, {grown >> 20} MB more"
        assert seconds < MOST_SECONDS and grown < MOST_BYTES, problem  # noqa: PT018


def _reset_peak() -> int:
    """Let the peak begin at what is held now; elsewhere than on Linux it is always 0."""
    with suppress(OSError):
        _CLEAR.write_text("5")
    return _read("VmRSS")


def _peak() -> int:
    return _read("VmHWM")


def _read(name: str) -> int:
    if not sys.platform.startswith("linux"):
        return 0
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) << 10

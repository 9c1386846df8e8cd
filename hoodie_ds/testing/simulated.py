"""Clock, ids and threads under a test's control, so that runs of one seed are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import TypeVar
from unittest.mock import patch

from hoodie_ds.errors import HoodieError
from hoodie_ds.index.lookup_indexes import shared_keys

_Result = TypeVar("_Result")
_POOLS = (
    "hoodie_ds.sink.commit.staged_merge",
    "hoodie_ds.sink.file_groups.buffers",
    "hoodie_ds.reader.scanner",
    "hoodie_ds.services.clean_planner",
    "hoodie_ds.metadata_table.joined_keys",
)


class SimClock:
    """A `Clock` that stands still until a test moves it, forwards or backwards (fault F11).

    Parameters
    ----------
    now_ms : int
        Its first time; 2026-01-01 by default.
    """

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, UTC."""
        return self._now_ms

    def advance(self, ms: int) -> None:
        """Move by milliseconds; a negative number sets it back."""
        self._now_ms += ms


class SimIds:
    """An `IdSource` that draws the same ids from the same seed."""

    def __init__(self, seed: int | str = 0) -> None:
        self._seed = seed
        self._drawn = 0

    def unique(self) -> str:
        """Return 32 lower-case hexadecimal digits."""
        self._drawn += 1
        return hashlib.sha256(f"{self._seed}/{self._drawn}".encode()).hexdigest()[:32]


class InlineExecutor:
    """A thread pool without threads: `submit` does the work."""

    def __init__(self, *_: object, **__: object) -> None:
        self.idle = True

    def __enter__(self) -> InlineExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def submit(
        self, work: Callable[..., _Result], *args: object, **named: object
    ) -> Future[_Result]:
        """Do the work; its error is raised by the future's result."""
        done: Future[_Result] = Future()
        try:
            done.set_result(work(*args, **named))
        except (HoodieError, SimulatedCrash) as error:
            done.set_exception(error)
        return done

    def map(self, work: Callable[..., _Result], *items: Iterable[object]) -> Iterator[_Result]:
        """Do the work for all items, even if no result is read, as a pool does."""
        futures = [self.submit(work, *args) for args in zip(*items, strict=False)]
        return (future.result() for future in futures)

    def shutdown(self, *_: object, **__: object) -> None:
        """Do nothing: all is done."""


class SimulatedCrash(BaseException):
    """The simulated end of the process; no handler of errors catches it."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the work of thread pools of the sink and the reader on the calling thread."""
    with ExitStack() as stack:
        for module in _POOLS:
            stack.enter_context(patch(f"{module}.ThreadPoolExecutor", InlineExecutor))
        yield


def forget_process() -> None:
    """Clear what this process remembers about tables across storages."""
    shared_keys.cache_clear()

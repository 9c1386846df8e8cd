"""Our error as the last line of what Spark prints.

An error of a data source reaches the user as a string, in the middle of what Spark adds: states,
the query's plan, the stack of the JVM. Nothing in the data source can come after that, so the
exceptions of PySpark in the user's own process are changed to end with it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

_OURS: Final = re.compile(r"\bhoodie_ds\.errors\.\w+: (.+)")
_NO_MODULE: Final = re.compile(
    r"ModuleNotFoundError: No module named "
    r"'(hoodie_ds|pyarrow|numpy|fsspec|fastavro|xxhash|rbloom)\b"
)
_NO_PYTHON: Final = re.compile(r"Cannot run program \"([^\"]*python[^\"]*)\"")
_WHERE: Final = "see 'On a cluster' in hoodie-ds' docs/tutorials/cluster.md"
_MARK: Final = "ends_with_hoodie_ds"


def our_sentence(text: str) -> str | None:
    """Return the message of the error of this library that Spark reports; None if there is none."""
    found = _OURS.findall(text)
    return found[-1].strip() if found else None


def worker_sentence(text: str) -> str | None:
    """Return the remedy for a Python worker that did not start, or lacks this package."""
    if missing := _NO_MODULE.search(text):
        return (
            f"a Python worker of Spark has no module {missing.group(1)!r}: install hoodie-ds in "
            "the Python that PYSPARK_PYTHON names on every node, or send it with the job "
            f"(this process runs {sys.executable}); {_WHERE}"
        )
    if program := _NO_PYTHON.search(text):
        return (
            f"the Python {program.group(1)!r} of Spark's workers is not on every node: an archive "
            "that Spark unpacks for executors has to be unpacked in the driver's working folder "
            f"too; {_WHERE}"
        )
    return None


def end_with_our_sentence() -> None:
    """Make PySpark's exceptions end with the error of this library that they report, if any.

    A worker that could not run this library has no such error; the exception then ends with the
    remedy (`worker_sentence`). Classes and other errors stay as they are. May be called again, for
    classes imported since, such as those of Spark Connect.
    """
    kinds: list[type[BaseException]] = [PySparkException, Py4JJavaError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
        text = vars(kind).get("__str__")
        if text is not None and not hasattr(text, _MARK):
            setattr(kind, "__str__", _ending(text))  # noqa: B010  mypy takes no methods


def _ending(text: Callable[[BaseException], str]) -> Callable[[BaseException], str]:
    @wraps(text)
    def ended(error: BaseException) -> str:
        said = text(error)
        found = [match.group() for match in _OURS.finditer(said)]
        last = found[-1].strip() if found else worker_sentence(said)
        if last is None or said.endswith(last):
            return said
        return f"{said.rstrip()}\n\n{last}"

    setattr(ended, _MARK, True)
    return ended

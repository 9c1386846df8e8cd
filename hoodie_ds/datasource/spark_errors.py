"""Our sentence as the last line of what Spark prints.

An error of a data source reaches the user as text, in the middle of what Spark adds: states, the
query's plan, the stack of the JVM. Nothing on the side of the data source can come after that, so
the exceptions of PySpark in the user's own process are made to end with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

_OURS: Final = re.compile(r"\bhoodie_ds\.errors\.\w+: (.+)")
_MARK: Final = "ends_with_hoodie_ds"


def our_sentence(text: str) -> str | None:
    """Return what an error of this library says that Spark tells of; None if there is none."""
    found = _OURS.findall(text)
    return found[-1].strip() if found else None


def end_with_our_sentence() -> None:
    """Make PySpark's exceptions end with the error of this library that they tell of, if any.

    Their classes stay what they are, and other errors say what they did. May be called again, for
    classes that were imported meanwhile, such as those of Spark Connect.
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
        if not found or said.endswith(found[-1]):
            return said
        return f"{said.rstrip()}\n\n{found[-1].strip()}"

    setattr(ended, _MARK, True)
    return ended

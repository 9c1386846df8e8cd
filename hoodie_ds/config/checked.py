"""The options of a table that is both written and read, checked before either."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hoodie_ds.config.given_options import check_keys
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError


def check_options(raw: Mapping[str, object]) -> None:
    """Raise one `OptionError` for all that is wrong with options, for a write or for a read.

    Parameters
    ----------
    raw : mapping of str to str
        As the user gave them; only this library reads them, so every key has to be known.
    """
    checks = (WriteOptions.parse, ReadOptions.parse, check_keys)
    found = (problem for check in checks for problem in _problems(check, raw))
    problems = {str(problem): problem for problem in found}
    if problems:
        raise OptionError.of(list(problems.values()))


def _problems(
    parse: Callable[[Mapping[str, object]], object], raw: Mapping[str, object]
) -> tuple[OptionError, ...]:
    try:
        parse(raw)
    except OptionError as problem:
        return problem.parts
    return ()

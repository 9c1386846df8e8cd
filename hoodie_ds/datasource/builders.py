"""What PySpark's readers and writers do for ``hoodie_py`` before they start.

Spark hands a Python data source the options of the call alone. So PySpark's classes, in the user's
own process, take the settings of the session too, and refuse what Spark would leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from itertools import islice
from typing import Any, Final

from pyspark.sql import SparkSession

from hoodie_ds.config.known_options import WRITE_OPTIONS
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.option import without_spark
from hoodie_ds.datasource.triggers import refuse_left_out
from hoodie_ds.log import Log

_MARK: Final = "_hoodie_ds_given"
_HUDIS: Final = "hoodie."
_SPARKS: Final = "spark.hoodie."
_PREFIXES: Final = (_HUDIS, _SPARKS)
_WRITE_KEYS: Final = {name for option in WRITE_OPTIONS for name in option.names}
_SESSION_OF: Final = ("_spark", "_client", "_session")
"""Where PySpark's classes keep the session."""
_BARE: Final = (  # Hudi's own writers do not take these either
    "settings of the Spark session without 'spark.' have no effect on writes: %s; "
    "set spark.hoodie.*, or give options"
)
_IN_SQL: Final = (
    "settings of the Spark session have no effect on hoodie_py in SQL: %s; give them in "
    "OPTIONS (...), without 'spark.'"
)


def write_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session for a write, by names that yield to the call's options.

    As in Hudi these are ``spark.hoodie.*`` alone; a warning names those without ``spark.``.
    """
    found = _settings(spark)
    _warn_once(_BARE, tuple(sorted(found.keys() & _WRITE_KEYS)))
    return _of_sparks(found)


def change_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session for a function that says itself what the operation is."""
    names = OperationOptions.operation.names_in_lower_case
    found = write_settings(spark)
    return {key: found[key] for key in found if without_spark(key).lower() not in names}


def query_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session for a query, also ``hoodie.*``, which win, as in Hudi."""
    found = _settings(spark)
    hudis = {f"spark.{key}": text for key, text in found.items() if key.startswith(_HUDIS)}
    return {**_of_sparks(found), **hudis}


def _settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session that may be options."""
    conf = spark.conf
    if not hasattr(conf, "_jconf"):
        return conf.getAll
    found = conf._jconf.getAllAsJava()
    # The end of a Java iterator is an exception, and PySpark takes long to ask what it is.
    keys = islice(iter(found), len(found))
    return {key: found[key] for key in keys if key in _WRITE_KEYS or key.startswith(_PREFIXES)}


def watch_reader(reader: type[Any], name: str) -> None:
    """Make a ``DataFrameReader`` class take the session's settings when it loads from `name`."""
    _watch(reader, name, ("format",), ("load",), lambda self, _: _take(self, query_settings))


def watch_stream_reader(reader: type[Any], name: str) -> None:
    """Make a ``DataStreamReader`` class do so; what a session says of queries is not for it."""
    _watch(
        reader,
        name,
        ("format",),
        ("load",),
        lambda self, _: _take(self, lambda spark: _of_sparks(_settings(spark))),
    )


def watch_writer(writer: type[Any], name: str) -> None:
    """Make a ``DataFrameWriter`` class take the session's settings when it saves to `name`."""
    _watch(writer, name, ("format",), ("save",), lambda self, _: _take(self, write_settings))


def watch_stream_writer(writer: type[Any], name: str) -> None:
    """Make a ``DataStreamWriter`` class do so, and refuse what Spark leaves out for `name`."""

    def before(self: Any, seen: dict[str, Any]) -> None:  # noqa: ANN401
        refuse_left_out(seen)
        _take(self, write_settings)

    _watch(writer, name, ("format", "trigger", "partitionBy"), ("start", "toTable"), before)


def watch_sql(session: type[Any], name: str) -> None:
    """Make a session class warn of settings that a statement of SQL with `name` does not take."""
    if hasattr(session, _MARK):
        return
    setattr(session, _MARK, {})
    run = session.sql

    @wraps(run)
    def watched(self: SparkSession, sqlQuery: str, *args: Any, **given: Any) -> Any:  # noqa: ANN401, N803
        if isinstance(sqlQuery, str) and name in sqlQuery.lower():
            found = (key for key in _settings(self) if key.startswith(_PREFIXES))
            _warn_once(_IN_SQL, tuple(sorted(found)))
        return run(self, sqlQuery, *args, **given)

    session.sql = watched


def _watch(
    builder: type[Any],
    name: str,
    noted: tuple[str, ...],
    starts: tuple[str, ...],
    before: Callable[[Any, dict[str, Any]], None],
) -> None:
    """Make a class note what its methods are given, and call `before` when it starts for `name`.

    A second time for the same class does nothing.
    """
    if _MARK in vars(builder):
        return
    setattr(builder, _MARK, {})
    for method in (*noted, *starts):
        watched = _watching(getattr(builder, method), name, before if method in starts else None)
        setattr(builder, method, watched)


def _watching(
    method: Callable[..., Any], name: str, before: Callable[[Any, dict[str, Any]], None] | None
) -> Callable[..., Any]:
    @wraps(method)
    def watched(self: Any, *args: Any, **given: Any) -> Any:  # noqa: ANN401
        named = {key: value for key, value in given.items() if value is not None}
        seen = {**getattr(self, _MARK), **named}
        if method.__name__ == "trigger":  # in place of an earlier one
            seen["continuous"] = given.get("continuous")
        elif method.__name__ == "format":
            seen["format"] = args[0] if args else given.get("source")
        elif method.__name__ == "partitionBy":
            seen["partitionBy"] = args[0] if len(args) == 1 else args
        elif len(args) > 1 and args[1] is not None:  # load(path, format), toTable(name, format)
            seen["format"] = args[1]
        setattr(self, _MARK, seen)
        if before is not None and seen.get("format") == name:
            before(self, seen)
        return method(self, *args, **given)

    return watched


def _of_sparks(settings: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in settings.items() if key.startswith(_SPARKS)}


def _take(builder: Any, settings: Callable[[SparkSession], dict[str, str]]) -> None:  # noqa: ANN401
    session = next(getattr(builder, name) for name in _SESSION_OF if hasattr(builder, name))
    for key, text in settings(session).items():
        builder.option(key, text)


@lru_cache(maxsize=256)
def _warn_once(message: str, keys: tuple[str, ...]) -> None:
    """Warn once for a set of settings that have no effect."""
    if keys:
        Log().warning(message, ", ".join(keys))

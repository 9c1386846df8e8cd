"""What all commands share: their table, their options and their exit codes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from hoodie_ds.config.secret_values import HIDDEN, shown
from hoodie_ds.errors import HoodieError, OptionError

if TYPE_CHECKING:
    from hoodie_ds.api.hoodie_table import HoodieTable

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

FAILED: Final = 1
"""Exit code of a command that was refused or failed."""
MISUSED: Final = 2
"""Exit code for a wrong command line or option."""
FOUND: Final = 3
"""Exit code of a check that found something."""
STOPPED: Final = 130
"""Exit code of a command that Ctrl-C stops."""
NARROWEST: Final = 20
"""Least width of the output."""

_HINT: Final = re.compile(r"`(hoodie-py [a-z-]+)([^`]*)`")
"""A command in a message: see `hints.command`."""
_PAIR: Final = "KEY=VALUE"
_STORAGE: Final = "hoodie.py.storage.option."
_STORAGE_VARIABLE: Final = "HOODIE_PY_STORAGE_OPTION"


@dataclass(frozen=True, slots=True)
class Target:
    """The table of a command."""

    path: str
    options: dict[str, str] = field(repr=False)
    given: tuple[tuple[str, str], ...] = ()
    """Options of the command line with their values, secrets hidden."""

    def table(self) -> HoodieTable:
        """Return the table; checks the options and reads nothing."""
        from hoodie_ds.api.hoodie_table import HoodieTable

        return HoodieTable(self.path, self.options)

    def reached(self, message: str) -> str:
        """Return a message with the options of the command line in the commands that it names."""
        found = _HINT.sub(self._with_options, message)
        if found != message and any(HIDDEN in value for _, value in self.given):
            found += f" ({HIDDEN} is not shown: give it again, or set {_STORAGE_VARIABLE})"
        return found

    def _with_options(self, hint: re.Match[str]) -> str:
        words = [hint[1], *(f"{name} {shlex.quote(value)}" for name, value in self.given
                            if f"{name} {shlex.quote(value)}" not in hint[2])]  # fmt: skip
        return f"`{' '.join(words)}{hint[2]}`"


def on_table(function: FunctionT) -> FunctionT:
    """Give a command the argument PATH and the options to open it; it gets a `Target` first."""

    @wraps(function)
    def command(
        path: str,
        props: Path | None,
        conf: tuple[str, ...],
        storage_option: tuple[str, ...],
        **rest: object,
    ) -> object:
        context = click.get_current_context()
        target = Target(path, _options(props, conf, storage_option), tuple(_given(context)))
        context.find_root().obj = target
        return function(target, **rest)

    for add in (
        click.option(
            "--storage-option",
            multiple=True,
            metavar=_PAIR,
            envvar=_STORAGE_VARIABLE,
            show_envvar=True,
            help="Option of the file system, such as endpoint_url=http://host:9000.",
        ),
        click.option(
            "--conf",
            multiple=True,
            metavar=_PAIR,
            envvar="HOODIE_PY_CONF",
            show_envvar=True,
            help="Option of Hudi or of this library; wins over --props.",
        ),
        click.option(
            "--props",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            envvar="HOODIE_PY_PROPS",
            show_envvar=True,
            help="Properties file of hoodie.* options.",
        ),
        click.argument("path", type=click.Path()),
    ):
        add(command)
    return command  # type: ignore[return-value]


def _options(
    props: Path | None, conf: Iterable[str], storage_option: Iterable[str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    if props is not None:
        from hoodie_ds.config.properties.java_properties import parse_properties

        found |= parse_properties(props.read_bytes(), str(props))
    found |= dict(_pair("--conf", text) for text in conf)
    given = (_pair("--storage-option", text) for text in storage_option)
    return {**found, **{f"{_STORAGE}{key}": value for key, value in given}}


def _given(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the table's options of the command line; those of the environment stay set there."""
    for name, prefix in (("props", None), ("conf", ""), ("storage_option", _STORAGE)):
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        option, value = f"--{name.replace('_', '-')}", context.params[name]
        if prefix is None:
            yield option, str(value)
            continue
        for key, text in (_pair(option, one) for one in value):
            yield option, f"{key}={shown(prefix + key, text)}"


def _pair(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        # The value stays out of the message: it may hold a password.
        raise OptionError(option, "***", f"write {_PAIR}")
    return key.strip(), value.strip()


def as_json(function: FunctionT) -> FunctionT:
    """Give a command the option ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def with_limit(default: int) -> Callable[[FunctionT], FunctionT]:
    """Give a command the options ``--limit`` and ``--all``, passed on as one `limit`."""

    def decorate(function: FunctionT) -> FunctionT:
        @wraps(function)
        def command(*args: object, limit: int, every: bool, **rest: object) -> object:
            return function(*args, limit=None if every else limit, **rest)

        click.option("--all", "every", is_flag=True, help="All rows.")(command)
        click.option(
            "--limit",
            type=click.IntRange(0),
            default=default,
            show_default=True,
            help="Rows at most.",
        )(command)
        return command  # type: ignore[return-value]

    return decorate


class Commands(click.Group):
    """A group of commands, listed by kind, whose errors are one line."""

    sections: dict[str, tuple[str, ...]]
    notes: dict[str, tuple[tuple[str, str], ...]]
    """What the help says below the commands, by title."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; a `HoodieError` or `OSError` becomes one line and an exit code."""
        try:
            return super().invoke(ctx)
        except HoodieError as error:
            kind = Misused if isinstance(error, OptionError) else Ended
            raise kind(ctx.obj.reached(str(error)) if ctx.obj else error) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Ended(error) from error
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            raise click.exceptions.Exit(STOPPED) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, kind by kind."""
        for title, names in self.sections.items():
            if not names:
                continue
            with formatter.section(title):
                found = ((name, self.get_command(ctx, name)) for name in names)
                formatter.write_dl(
                    [(name, one.get_short_help_str(100)) for name, one in found if one]
                )
        for title, lines in self.notes.items():
            with formatter.section(title):
                formatter.write_dl(lines)


class Ended(click.ClickException):
    """A command was refused or failed; prints one line on standard error."""

    exit_code = FAILED

    def __init__(self, error: object) -> None:
        super().__init__(" ".join(str(error).split()) or type(error).__name__)


class Misused(Ended):
    """The command line or an option is wrong."""

    exit_code = MISUSED

"""Ways to plant a bug: what a function of the package does is changed, in whatever module it is.

A function has the name that it has in its module, `claim` or `Merger.new_wins`; where two modules
have one of that name, the module's own name stands before it: `ownership.claim`.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial, wraps
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from hoodie_ds.timeline.timeline import once_per_timeline

PACKAGE = Path(__file__).parents[2] / "hoodie_ds"


@dataclass(frozen=True)
class Patch:
    """A change of what a function does.

    Parameters
    ----------
    name : str
        The function.
    change : callable
        Makes another function of it.
    """

    name: str
    change: Callable[[FunctionType], Callable[..., Any]]

    def check(self) -> None:
        """Fail if there is no such function, or if it does not use what is to be changed."""
        _rewrapped(_find(self.name).value, self.change)

    def plant(self) -> None:
        """Change the function in this process, wherever it was imported."""
        _find(self.name).replace(self.change)


@dataclass(frozen=True)
class Text:
    """A change in the middle of a function, as text.

    Parameters
    ----------
    old, new : str
        The text that is replaced, which occurs once in the package, and what takes its place.
    """

    old: str
    new: str

    def check(self) -> None:
        """Fail if the text is not there, or not in a function."""
        self._changed()

    def plant(self) -> None:
        """Change the function in this process."""
        changed = self._changed()
        functions = [one for one in gc.get_objects() if type(one) is FunctionType]
        for function in functions:
            function.__code__ = changed.get(function.__code__, function.__code__)

    def _changed(self) -> dict[CodeType, CodeType]:
        """Return the functions that are others: that which is changed, and those that move."""
        path = module_with(self.old)
        source = _sources()[path]
        old, new = (
            _functions(compile(text, path, "exec", dont_inherit=True))
            for text in (source, source.replace(self.old, self.new))
        )
        changed = {was: now for was, now in zip(old, new, strict=True) if was != now}
        assert changed, f"{self.old!r} is in no function: change it `within` one that uses it"
        return changed


def module_with(text: str) -> Path:
    """Find the one module of the package in which a text occurs once."""
    found = [path for path, source in _sources().items() if text in source]
    assert len(found) == 1, f"{text!r} occurs in {len(found)} modules"
    assert _sources()[found[0]].count(text) == 1, f"{text!r} occurs more than once"
    return found[0]


@cache
def _sources() -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module and its classes, with those within them."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_NEWLOCALS:
                yield constant
            else:
                yield from _functions(constant)


class Around(NamedTuple):
    """Something in front of a function: it is called with the function and its arguments."""

    behaviour: Callable[..., Any]


class Changed:
    """An object that is like another one, but for some attributes."""

    def __init__(self, like: object, **attributes: object) -> None:
        self.__dict__.update(attributes)
        self.__like = like

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__like, name)


def returns(value: object) -> Callable[..., Any]:
    """Return a function that returns a value, whatever it is given."""
    return lambda *_, **__: value


nothing = returns(None)
"""A function that does nothing."""


def instead(name: str, behaviour: Callable[..., Any]) -> Patch:
    """Call something else for a function, with the function itself before its arguments."""

    def changed(function: FunctionType) -> Callable[..., Any]:
        @wraps(function)
        def planted(*args: Any, **kwargs: Any) -> Any:
            return behaviour(function, *args, **kwargs)

        return planted

    return Patch(name, changed)


def skipped(name: str) -> Patch:
    """Let a function return nothing, and do nothing."""
    return instead(name, nothing)


def always(name: str, value: object) -> Patch:
    """Let a function return a value, whatever it is given."""
    return instead(name, returns(value))


def within(name: str, **used: object) -> Patch:
    """Let global names that a function uses mean something else in that function alone."""

    def changed(function: FunctionType) -> Callable[..., Any]:
        missing = used.keys() - {*function.__code__.co_names, *_inner_names(function)}
        assert not missing, f"{name} does not use {sorted(missing)}"
        meant = _Names(function.__globals__)
        for key, value in used.items():
            if isinstance(value, Around):
                meant[key] = partial(value.behaviour, meant[key])
            else:
                meant[key] = value
        planted = FunctionType(
            function.__code__,
            meant,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        planted.__kwdefaults__ = function.__kwdefaults__
        planted.__module__, planted.__qualname__ = function.__module__, function.__qualname__
        return planted

    return Patch(name, changed)


def seeing(name: str, **answers: object) -> Patch:
    """Let timelines that a function loads of its table, the first argument, answer otherwise."""

    def behaviour(function: Callable[..., Any], table: Any, *args: Any, **kwargs: Any) -> Any:
        def load_timeline() -> Changed:
            return Changed(table.load_timeline(), **answers)

        return function(Changed(table, load_timeline=load_timeline), *args, **kwargs)

    return instead(name, behaviour)


class _Names(dict[str, Any]):
    """Global names, some of which mean something else than in a module."""

    def __init__(self, module: dict[str, Any]) -> None:
        super().__init__()
        self.module = module

    def __missing__(self, name: str) -> Any:
        return self.module[name] if name in self.module else vars(builtins)[name]


def _inner_names(function: FunctionType) -> Iterator[str]:
    """Names that functions and comprehensions within a function use."""
    for constant in function.__code__.co_consts:
        yield from getattr(constant, "co_names", ())


class _Found(NamedTuple):
    """A function, and the module or class that has it."""

    owner: ModuleType | type
    name: str
    value: Any

    def replace(self, changed: Callable[[FunctionType], Callable[..., Any]]) -> None:
        """Put another function in its place, wherever it was imported."""
        new = _rewrapped(self.value, changed)
        if isinstance(self.owner, type):
            setattr(self.owner, self.name, new)
            if isinstance(new, cached_property):
                new.__set_name__(self.owner, self.name)
            return
        for module in (*_package(), *_tests()):
            for name, value in list(vars(module).items()):
                if value is self.value:
                    setattr(module, name, new)


def _rewrapped(value: Any, changed: Callable[[FunctionType], Callable[..., Any]]) -> Any:
    """Change the function that a method, a property or what a decorator returns is made of."""
    change: Callable[[Any], Any] = changed
    if isinstance(value, classmethod | staticmethod):
        return type(value)(change(value.__func__))
    if isinstance(value, property):
        return property(change(value.fget))
    if isinstance(value, cached_property):
        return cached_property(change(value.func))
    if hasattr(value, "cache_info"):
        return cache(change(value.__wrapped__))
    if hasattr(value, "__wrapped__"):
        yields = inspect.isgeneratorfunction(value.__wrapped__)
        return (contextmanager if yields else once_per_timeline)(change(value.__wrapped__))
    assert isinstance(value, FunctionType), value
    return change(value)


@cache
def _package() -> tuple[ModuleType, ...]:
    """Return all modules of the package."""
    package = importlib.import_module("hoodie_ds")
    found = pkgutil.walk_packages(package.__path__, "hoodie_ds.")
    return (package, *(importlib.import_module(module.name) for module in found))


def _tests() -> list[ModuleType]:
    """Return the modules of tests that are imported; those that plant bugs keep what they wrap."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("tests.") and not name.startswith("tests.mutants")
    ]


def _find(name: str) -> _Found:
    """Find the one function of that name; bugs of the test kit are none of the package."""
    found = [
        _Found(owner, path[-1], vars(owner)[path[-1]])
        for module in _package()
        if not module.__name__.startswith("hoodie_ds.testing")
        for path in _paths_in(module, name)
        if (owner := _owner(module, path)) is not None
    ]
    places = [getattr(f.owner, "__module__", f.owner.__name__) for f in found]
    assert len(found) == 1, f"{name} is in {places or 'no module'} of the package"
    return found[0]


def _paths_in(module: ModuleType, name: str) -> Iterator[list[str]]:
    yield name.split(".")
    first, _, rest = name.partition(".")
    if rest and module.__name__.endswith(f".{first}"):
        yield rest.split(".")


def _owner(module: ModuleType, path: list[str]) -> ModuleType | type | None:
    """Return what has a function, if the module defines it."""
    owner: Any = module
    for part in path[:-1]:
        owner = vars(owner).get(part)
        if not isinstance(owner, type):
            return None
    if path[-1] not in vars(owner):
        return None
    home = owner if isinstance(owner, type) else vars(owner)[path[-1]]
    if isinstance(home, ModuleType) or getattr(home, "__module__", None) != module.__name__:
        return None
    return owner

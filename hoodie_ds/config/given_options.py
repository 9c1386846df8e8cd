"""The options of one call, all that is wrong with them, and the groups of options made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hoodie_ds.config.option import Option, is_of_session, without_spark
from hoodie_ds.config.restricted_options import Restriction
from hoodie_ds.errors import OptionError

if TYPE_CHECKING:
    from typing import Self

T = TypeVar("T")

_Named: TypeAlias = "dict[str, tuple[str, Option[Any]]]"
"""Options and their fields' names."""


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The options of one call, keyed in lower case, and all that is wrong with them.

    Parameters
    ----------
    entries : mapping
        Key in lower case to the key as written and its value.
    problems : list of OptionError
        What was found wrong up to now; `check` raises it.
    """

    entries: Mapping[str, tuple[str, str]] = field(repr=False)
    problems: list[OptionError] = field(default_factory=list, repr=False, compare=False)

    def refuse(self, problem: OptionError) -> None:
        """Note what is wrong; each thing once."""
        if all(problem.args != known.args for known in self.problems):
            self.problems.append(problem)

    def refuse_value(self, option: Option[Any], remedy: str) -> None:
        """Note what is wrong with an option, under each name that it was given by."""
        for key, text in self.written(option):
            self.refuse(OptionError(key, text, remedy))

    def refuse_in_call(self, option: Option[Any], remedy: str) -> None:
        """Note what is wrong with an option of this call; settings of a session are for others."""
        if not any(is_of_session(key) for key, _ in self.written(option)):
            self.refuse_value(option, remedy)

    def check(self) -> None:
        """Raise one `OptionError` for all that is wrong, if anything is."""
        if self.problems:
            raise OptionError.of(self.problems)

    def get(self, option: Option[T]) -> T | None:
        """Return an option's value, ``None`` if it is not given.

        A value that is not allowed, or names of the option that contradict one another, are noted.
        """
        try:
            return self._value(option)
        except OptionError as problem:
            self.refuse(problem)
            return None

    def _value(self, option: Option[T]) -> T | None:
        found = [(key, text, option.parse(text, key)) for key, text in self.written(option)]
        for key, text, value in found[1:]:
            if value != found[0][2]:
                raise OptionError(
                    key, text, f"contradicts {found[0][0]}, which means the same; give one"
                )
        return found[0][2] if found else None

    def written(self, option: Option[Any]) -> list[tuple[str, str]]:
        """Return (key as written, value) of an option, under its own name and its aliases."""
        names = option.names_in_lower_case
        return [self.entries[name] for name in names if name in self.entries]

    def get_or_default(self, option: Option[T]) -> T:
        """Return the value of an option; that it is needed and not given is a problem."""
        value = None
        if not self.entries.keys().isdisjoint(option.names_in_lower_case):
            value = self.get(option)
        elif option.needed:
            self.refuse(OptionError(option.key, None, option.needed))
        return option.default if value is None else value

    def text(self, key: str) -> str | None:
        """Return the string given under one key, ``None`` if not given."""
        entry = self.entries.get(key.lower())
        return None if entry is None else entry[1]

    def with_prefix(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield (what follows the prefix, as written; value) of the keys that have it."""
        for lower, (key, text) in self.entries.items():
            if lower.startswith(prefix.lower()):
                yield without_spark(key)[len(prefix) :], text

    def refuse_restricted(self, restricted: Mapping[str, Restriction]) -> None:
        """Note each value that asks for what this release does not do yet."""
        for key, restriction in restricted.items():
            text = self.text(key)
            if text is not None and text.strip().lower() not in restriction.accepted:
                written = self.entries[key.lower()][0]
                self.refuse(OptionError(written, text, f"not supported yet; {restriction.remedy}"))


@dataclass(frozen=True, kw_only=True)
class OptionGroup:
    """Options of one subject: a field each, whose class attribute is the `Option`."""

    def __post_init__(self) -> None:
        """Take the default where a dataclass hands over the class attribute, the option itself."""
        for name, value in vars(self).items():
            if isinstance(value, Option):
                object.__setattr__(self, name, value.default)

    def with_values(self, **values: Any) -> Self:  # noqa: ANN401
        """Return a copy with other values in some fields, without a call for each of the fields."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, **values)
        return copy

    def __getstate__(self) -> dict[str, object]:
        """Pickle what differs from the defaults alone: options travel with each task."""
        defaults = vars(type(self)._defaults())
        return {name: value for name, value in vars(self).items() if value != defaults[name]}

    def __setstate__(self, changed: dict[str, object]) -> None:
        """Take the defaults of the same release for the rest."""
        self.__dict__.update({**vars(type(self)._defaults()), **changed})

    @classmethod
    @cache
    def _defaults(cls) -> Self:
        return cls()

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong.

        Of some hundred options a write is given few: nothing is done for each of the others.
        """
        by_key, needed, parts = cls._declared()
        asked = {**needed, **dict(by_key[key] for key in given.entries if key in by_key)}
        read = {name: given.get_or_default(option) for name, option in asked.items()}
        default = cls._defaults()
        values: dict[str, Any] = {name: read[name] for name in read.keys() & vars(default).keys()}
        return default.with_values(**values, **{n: part.of(given) for n, part in parts.items()})

    @classmethod
    @cache
    def _declared(cls) -> tuple[_Named, dict[str, Option[Any]], dict[str, type[OptionGroup]]]:
        """Return the options by key in lower case, those that are needed, and groups by name."""
        declared = (pair for base in cls.__mro__ for pair in vars(base).items())
        options = {name: option for name, option in declared if isinstance(option, Option)}
        parts: dict[str, type[OptionGroup]] = {}
        for one in fields(cls):
            part: object = one.default_factory
            if isinstance(part, type) and issubclass(part, OptionGroup):
                parts[one.name] = part
        by_key = {key: pair for pair in options.items() for key in pair[1].names_in_lower_case}
        return by_key, {name: one for name, one in options.items() if one.needed}, parts


def strings(name: str, given: str | Iterable[str]) -> tuple[str, ...]:
    """Return the strings given for `name`; a single string counts as one, never as its letters.

    Anything else among them is an `OptionError`.
    """
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise OptionError(name, given, "give a list of strings")
    found = tuple(given)
    for text in found:
        if not isinstance(text, str):
            raise OptionError(name, text, f"give strings; this is of type {type(text).__name__}")
    return found

"""Typed values out of the entries of a properties file; what is malformed is a typed error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from hoodie_ds.config.enums import IndexType, KeyGeneratorType, PartialUpdateMode
from hoodie_ds.config.properties import keys
from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.hints import PROPERTIES_ANEW

E = TypeVar("E", bound=Enum)


@dataclass(frozen=True, slots=True)
class PropertyReader:
    """Entries of the file at `path`; every method names file, key and value when it refuses."""

    raw: Mapping[str, str]
    path: str

    def text(self, key: str) -> str:
        """Return a mandatory string that is not empty."""
        value = self.raw.get(key)
        if not value:
            raise CorruptFileError(
                f"{self.path}: {key} is missing, so this is not the properties file of a Hudi "
                f"table",
                PROPERTIES_ANEW,
            )
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        """Return a whole number; mandatory without a default."""
        if default is not None and key not in self.raw:
            return default
        text = self.text(key).strip()
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise self._malformed(key, "a whole number")
        return int(text)

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return a truth value."""
        text = self.raw.get(key, "").strip().lower()
        if text not in ("", "true", "false"):
            raise self._malformed(key, "true or false")
        return text == "true" if text else default

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names in a comma-separated list; none if the key is missing."""
        names = (name.strip() for name in self.raw.get(key, "").split(","))
        return tuple(name for name in names if name)

    def member(self, key: str, members: type[E]) -> E:
        """Return a mandatory member of an enum, in any letter case."""
        text = self.text(key).strip().upper()
        for member in members:
            if str(member.value).upper() == text:
                return member
        if members in (IndexType, PartialUpdateMode):
            raise UnsupportedTableError(f"{self.path}: {key} = {text[:100]!r} is unknown here")
        raise self._malformed(key, "one of " + ", ".join(str(member.value) for member in members))

    def key_generator(self, default: KeyGeneratorType) -> KeyGeneratorType:
        """Return the key generator, by type or class; the default if the file names none."""
        text = self.raw.get(keys.KEY_GENERATOR_TYPE, "").strip().upper().removesuffix("_AVRO")
        named = self.raw.get(keys.KEY_GENERATOR_CLASS, "").strip()
        if not text and not named:
            return default
        found = (
            next((kind for kind in KeyGeneratorType if kind.value == text), None)
            if text
            else KeyGeneratorType.from_java_class(named)
        )
        if found is None:
            raise UnsupportedTableError(
                f"{self.path}: the key generator {(text or named)[:200]!r} is unknown here"
            )
        return found

    def _malformed(self, key: str, allowed: str) -> CorruptFileError:
        return CorruptFileError(f"{self.path}: {key} = {self.raw[key][:100]!r} is not {allowed}")

"""How many buckets a partition has, by rules over its path (RFC-89).

The invariant: a rule decides here as it decides in Hudi, whose regular expressions are Java's. So
only what means the same here is accepted; anything else would part one key's rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.linear_pattern import is_found, is_linear
from hoodie_ds.errors import RecordKeyError

BUCKETS_MAX: Final = 99_999_999
"""Eight digits of a file id name the bucket."""

RULE_TYPE: Final = "regex"
"""The only type of rules that Hudi has."""

_BLANKS: Final = "".join(map(chr, range(33)))  # what Java's trim takes off
_LINE_ENDS: Final = re.compile("[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class BucketRules:
    """Rules, of which the first that matches a partition's path gives its number of buckets.

    Parameters
    ----------
    rules : tuple of (str, int)
        A regular expression, to be found anywhere in the path, and a number of buckets.
    """

    rules: tuple[tuple[str, int], ...]

    @classmethod
    def parse(cls, text: str) -> BucketRules | None:
        """Read ``regex,number;regex,number`` as Hudi does; None for what is not accepted."""
        rules = [_rule(part) for part in text.rstrip(";").split(";")]
        found = tuple(rule for rule in rules if rule is not None)
        return cls(found) if len(found) == len(rules) else None

    def __str__(self) -> str:
        """Return the rules as Hudi writes them."""
        return ";".join(f"{pattern},{number}" for pattern, number in self.rules)

    def num_buckets(self, partition_path: str) -> int | None:
        """Return the number of buckets of a partition; None if no rule matches.

        A line end in the path, which Java's expressions treat in a way of their own, is a
        `RecordKeyError`.
        """
        if _LINE_ENDS.search(partition_path):
            raise RecordKeyError(
                f"partition path {partition_path[:200]!r} has a line end, which a table whose "
                "number of buckets depends on the path cannot have; format the value without it"
            )
        matching = (n for p, n in self.rules if is_found(p, partition_path))
        return next(matching, None)


def _rule(text: str) -> tuple[str, int] | None:
    pattern, _, number = (part.strip(_BLANKS) for part in text.partition(","))
    if not re.fullmatch(r"\+?[0-9]{1,8}", number) or not 0 < int(number) <= BUCKETS_MAX:
        return None
    return (pattern, int(number)) if is_linear(pattern) else None

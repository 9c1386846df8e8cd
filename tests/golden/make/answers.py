"""Comparing what Hudi answers now with what it answered when a golden was made."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

_INSTANT = re.compile(r"20\d{15}")
_BY_CHANCE = re.compile(r'(_hoodie_(?:commit_seqno|file_name)\\?":\\?")[^"\\]*')
"""What depends on the ids of files, of rows and of rows within the texts of change data."""


def differences(stored: Path, made: Path) -> list[str]:
    """Queries of a golden that have other answers in another making of it.

    Parameters
    ----------
    stored, made : Path
        Two files of answers of one table.

    Returns
    -------
    list of str
        A line for each query that differs; instant times, file names and sequence numbers do not
        count, but the order of the instants does.
    """
    first, second = comparable(stored), comparable(made)
    lines = []
    for options in sorted({*first, *second}):
        was, now = first.get(options, []), second.get(options, [])
        if was != now:
            gone, new = sorted({*was} - {*now}), sorted({*now} - {*was})
            lines.append(f"{made.name}: {options}: {gone} became {new}"[:2000])
    return lines


def comparable(path: Path) -> dict[str, list[str]]:
    """Answers by query, with the ranks of instant times in their place."""
    text = gzip.decompress(path.read_bytes()).decode()
    ranks = {time: f"#{n}" for n, time in enumerate(sorted(set(_INSTANT.findall(text))))}
    text = _INSTANT.sub(lambda found: ranks[found.group()], _BY_CHANCE.sub(r"\1", text))
    answers: dict[str, list[str]] = {}
    for query in json.loads(text)["queries"]:
        rows = [json.dumps(row, sort_keys=True) for row in query.get("rows", [])]
        error = query.get("error", "").partition(":")[0]
        answers[json.dumps(query["options"], sort_keys=True)] = [*sorted(rows), error]
    return answers

"""The form in which pyarrow pickles expressions, which is private to it."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds.filters.arrow_form import Node, taken_apart

F = pc.field


def column(*path: str) -> Node:
    return Node(path=path)


def test_pyarrow_still_has_the_form_that_is_known() -> None:
    """If a release changes it, filters are slower: mend `arrow_form`, do not delete this test."""
    moment = pa.scalar(datetime(2026, 1, 1), pa.timestamp("ns"))
    expression = (
        ((F("a") < 3) & ~(F("b") == moment))
        | F("c", "d").is_null()
        | F("e").isin(["x", None])
        | pc.starts_with(F("e"), "y")
    )
    found = taken_apart(expression)
    null, membership, prefix = (
        found.arguments[0].arguments[0].arguments[1],
        *(node.arguments[1] for node in (found.arguments[0], found)),
    )
    assert (null.option("nan_is_null", None), null.arguments) == (False, [column("c", "d")])
    assert membership.function == "is_in"
    assert membership.option("value_set", None) == ["x", None]
    assert (prefix.option("pattern", None), prefix.option("ignore_case", None)) == ("y", False)
    assert found.arguments[0].arguments[0].arguments[0] == Node(
        "and_kleene",
        [
            Node("less", [column("a"), Node(value=pa.scalar(3))]),
            Node("invert", [Node("equal", [column("b"), Node(value=moment)])]),
        ],
    )
    assert found.columns() == frozenset("abce")


def test_another_form_is_not_understood() -> None:
    class Other:
        def __init__(self, buffer: object) -> None:
            self.buffer = buffer

        def __reduce__(self) -> tuple[object, ...]:
            return (Other, (self.buffer,))

    _, (known,) = (F("a") < 3).__reduce__()
    with pa.ipc.open_file(known) as file:
        batch = file.get_batch(0)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema.with_metadata({"call": "less"})) as file:
        file.write_batch(batch.replace_schema_metadata({"call": "less"}))
    for other in (Other(b"?"), Other(sink.getvalue()), F(0) == 1):
        with pytest.raises((pa.ArrowException, ValueError, LookupError)):
            taken_apart(other)
    assert taken_apart(Other(known)) == taken_apart(F("a") < 3)

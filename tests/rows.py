"""Row-by-row comparison of Arrow tables, shared by the suites.

Order of rows and columns does not count, nor does the difference between ``string`` and
``large_string`` (and the like); every other type, every value and every null does.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
KEYS = ("_hoodie_partition_path", "_hoodie_record_key")


def without_meta(table: pa.Table) -> pa.Table:
    """Return the table without Hudi's five meta columns."""
    return table.select([name for name in table.column_names if name not in META])


def assert_same_rows(actual: pa.Table, expected: pa.Table, keys: Sequence[str] = KEYS) -> None:
    """Fail with the first difference unless both tables hold the same rows.

    Parameters
    ----------
    actual, expected : pyarrow.Table
        Tables with the same columns, in any order.
    keys : sequence of str
        Columns that identify a row: both sides are sorted by them.
    """
    assert sorted(actual.column_names) == sorted(expected.column_names)
    assert actual.num_rows == expected.num_rows
    order = [(key, "ascending") for key in keys]
    left = plain(actual.select(expected.column_names)).sort_by(order)
    right = plain(expected).sort_by(order)
    for name in [*keys, *(name for name in right.column_names if name not in keys)]:
        _assert_same_column(name, left, right, keys)


def plain(table: pa.Table) -> pa.Table:
    """Cast large, view and dictionary types to the plain ones, names of list items included."""
    fields = [pa.field(field.name, plain_type(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the one type that stands for a family of Arrow encodings."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, plain_type(child.type)) for child in kind])
    return kind


def _assert_same_column(name: str, left: pa.Table, right: pa.Table, keys: Sequence[str]) -> None:
    ours, theirs = left.column(name), right.column(name)
    assert ours.type == theirs.type, f"column {name}: {ours.type} is not {theirs.type}"
    if ours.equals(theirs):
        return
    # repr tells NaN from null, 1 from True and -0.0 from 0.0, and finds NaN equal to itself
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
    wrong = [row for row, (a, b) in enumerate(pairs) if repr(a) != repr(b)]
    if wrong:
        row = wrong[0]
        key = {column: right.column(column)[row].as_py() for column in keys}
        raise AssertionError(
            f"column {name} differs in {len(wrong)} of {right.num_rows} rows, first at {key}: "
            f"{ours[row].as_py()!r} is not {theirs[row].as_py()!r}"
        )

"""A user's own merge rule: the ``MergeHook`` of HUDI-2450, over whole Arrow tables.

Invariant: the result of a user's code is checked before it is used, and any failure in it is a
`MergeHookError` that names the hook.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask, as_numpy, one_chunk
from hoodie_ds.columns.meta_columns import META_COLUMNS, RECORD_KEY
from hoodie_ds.config.properties.keys import MERGE_HOOK
from hoodie_ds.config.table_options import hook_name
from hoodie_ds.errors import HoodieError, MergeHookError, OptionError
from hoodie_ds.record.field_path import resolve

_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge hook.

    Parameters
    ----------
    rows : pyarrow.Table
        The merged rows: columns, types and length of the rows that the hook was given, row by row.
    delete : pyarrow.BooleanArray, optional
        Which keys have no row any more, whatever `rows` says there; none if None.
    kept : pyarrow.BooleanArray, optional
        Which stored rows stay unchanged, with the commit that wrote them, whatever `rows` says
        there; none if None. Incremental queries see the others as changed.
    """

    rows: pa.Table
    delete: pa.BooleanArray | None = None
    kept: pa.BooleanArray | None = None


class MergeHook(Protocol):
    """Merges rows that have the same key: ``merge(Option<old>, new) -> Option`` of HUDI-2450.

    It must be associative, with a deleted row counting as none: rows of one batch are merged with
    one another before they meet what is stored, and log files before they meet their base file. The
    mask of deletes takes effect only when rows meet what is stored, or nothing, so the hook can
    delete by the result of the merge. A row that is itself a delete is marked by
    ``_hoodie_is_deleted``, and the hook never sees it. The hook must return the same result for the
    same rows every time. It takes the fields of the record key and the partition, by which a row is
    found again, from one of the two rows; any other value is refused.
    """

    def __call__(self, old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        """Merge whole tables, so that the hook can work on whole columns.

        Parameters
        ----------
        old, new : pyarrow.Table
            The table's own columns. Row ``i`` of both has the same key; `old` came first.
        no_old : pyarrow.BooleanArray
            Which keys have no stored row; the row of `old` is then null.
        """
        ...


@dataclass(frozen=True, slots=True)
class HookCall:
    """A hook, called with the rows of a table and checked against its contract."""

    hook: MergeHook
    name: str  # in messages
    places: tuple[str, ...] = ()  # paths of the fields of record key and partition

    def merge(self, old: pa.Table, new: pa.Table) -> tuple[pa.Table, Mask, Mask]:
        """Merge new rows into as many older ones, pair by pair.

        `old` has the user's columns of `new`, which also has ``_hoodie_record_key``. Returns `new`
        with the user's columns of the hook's result, which of them are deletes, and which are
        replaced by unchanged rows of `old`. A `MergeHookError` means that the hook raised or that
        its result is not valid.
        """
        return self._call(old, new, False)

    def insert(self, new: pa.Table) -> tuple[pa.Table, Mask]:
        """Merge new rows without older ones, of which none can be kept; see `merge`."""
        nulls = {field.name: pa.nulls(new.num_rows, field.type) for field in new.schema}
        rows, deleted, _ = self._call(pa.table(nulls), new, True)
        return rows, deleted

    def inserted(self, new: pa.Table) -> pa.Table:
        """Return the rows that remain of new ones without a stored row of their keys."""
        rows, deleted = self.insert(new)
        return rows.filter(pa.array(~deleted)) if deleted.any() else rows

    def _call(self, old: pa.Table, new: pa.Table, no_old: bool) -> tuple[pa.Table, Mask, Mask]:
        count = new.num_rows
        if not count:
            return new, np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
        names = [name for name in new.column_names if name not in META_COLUMNS]
        wanted = new.select(names)
        failure = partial(self._failure, str(new.column(RECORD_KEY)[0]))
        with _RaisedAs(failure):
            answer = self.hook(old.select(names), wanted, pa.array(np.full(count, no_old)))
        problem = _problem(answer, wanted)
        if problem is not None:
            raise failure(problem)
        columns = [
            (answer.rows if name in names else new).column(name) for name in new.column_names
        ]
        rows = pa.Table.from_arrays(columns, schema=new.schema)
        deleted, kept = (
            np.zeros(count, dtype=np.bool_) if mask is None else np.array(mask, dtype=np.bool_)
            for mask in (answer.delete, answer.kept)
        )
        kept &= ~deleted & (not no_old)
        self._check_places(rows, deleted | kept, [new] if no_old else [new, old])
        return rows, deleted, kept

    def _check_places(self, rows: pa.Table, ignored: Mask, given: Sequence[pa.Table]) -> None:
        """Refuse rows that could not be found again, with a key or partition of no given row."""
        for path in self.places:
            made = resolve(rows, path)
            known = ignored.copy()
            for side in given:
                known |= _same(made, resolve(side, path))
            if not known.all():
                at = int(np.argmin(known))
                was, now = (repr(c[at].as_py())[:_SHOWN] for c in (resolve(given[0], path), made))
                raise self._failure(
                    str(given[0].column(RECORD_KEY)[at]),
                    f"it made {path!r} = {now} of {was}, and by this field of the record key or "
                    "the partition the row is found again; take it from one of the two rows",
                )

    def _failure(self, key: str, problem: str) -> MergeHookError:
        return MergeHookError(
            f"merge hook {self.name} failed on key {key[:_SHOWN]!r} and those with it: {problem}; "
            "fix the hook and try again"
        )


def hook_call(hook: str | Callable[..., object], places: tuple[str, ...] = ()) -> HookCall:
    """Return a hook given as an object or as ``package.module:callable``.

    An `OptionError` means that it cannot be imported.
    """
    if not isinstance(hook, str):
        return HookCall(hook, hook_name(hook), places)  # type: ignore[arg-type]
    remedy = "name a callable as package.module:callable that every process of the job can import"
    module_name, _, path = hook.partition(":")
    with _RaisedAs(lambda problem: OptionError(MERGE_HOOK, hook, f"{problem}; {remedy}")):
        found = import_module(module_name)
        for name in path.split("."):
            found = getattr(found, name)
    if not callable(found):
        raise OptionError(MERGE_HOOK, hook, f"it is no callable; {remedy}")
    return HookCall(found, hook, places)


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Mask:
    """Which values of two columns of one type are the same; nulls are, and so are NaN."""
    if one.equals(other):
        return np.ones(len(one), dtype=np.bool_)
    both = pa.chunked_array([*one.chunks, *other.chunks], one.type)
    codes = as_numpy(one_chunk(both).dictionary_encode("encode").indices)
    same: Mask = codes[: len(one)] == codes[len(one) :]
    return same


def _problem(answer: object, wanted: pa.Table) -> str | None:
    """What is wrong with a hook's result; None if nothing is."""
    if not isinstance(answer, Merged) or not isinstance(answer.rows, pa.Table):
        kind = type(answer.rows if isinstance(answer, Merged) else answer)
        return f"it returned a {kind.__name__}, not Merged(rows: pyarrow.Table, delete, kept)"
    if answer.rows.num_rows != wanted.num_rows:
        return f"it returned {answer.rows.num_rows} rows for {wanted.num_rows}"
    return (
        _schema_problem(answer.rows, wanted.schema)
        or _mask_problem(answer.delete, "deletes", len(wanted))
        or _mask_problem(answer.kept, "kept rows", len(wanted))
    )


def _schema_problem(rows: pa.Table, wanted: pa.Schema) -> str | None:
    if rows.column_names != wanted.names:
        return f"it returned columns {rows.column_names}, not {wanted.names}"
    for field, column in zip(wanted, rows.columns, strict=True):
        if column.type != field.type:
            return f"column {field.name!r} of its result is {column.type}, not {field.type}"
        if column.null_count and not field.nullable:
            return f"column {field.name!r} of its result has nulls, which the table does not allow"
    return None


def _mask_problem(mask: object, what: str, count: int) -> str | None:
    if mask is None:
        return None
    if not isinstance(mask, (pa.Array, pa.ChunkedArray)) or not pa.types.is_boolean(mask.type):
        return f"its mask of {what} is a {getattr(mask, 'type', type(mask).__name__)}, not bool"
    if len(mask) != count:
        return f"its mask of {what} has {len(mask)} values for {count} rows"
    return f"its mask of {what} has nulls; say true or false" if mask.null_count else None


@dataclass(frozen=True, slots=True)
class _RaisedAs:
    """Turns any exception of a user's code, whatever its type, into a `HoodieError`."""

    error_of: Callable[[str], HoodieError]

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            raise self.error_of(f"{type(error).__name__}: {str(error)[:_SHOWN]}") from error

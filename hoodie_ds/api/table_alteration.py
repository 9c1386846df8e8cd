"""`TableAlteration`: changes of a table's columns, as users add them one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

from hoodie_ds.api.table_merge import Begins, Writes, with_columns
from hoodie_ds.sink.commit.conflicts import retry_after_conflicts
from hoodie_ds.sink.table_alteration import Alter, Alteration, altered
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.alteration import AlteredColumns


class TableAlteration:
    """Changes of a table's columns, made by `HoodieTable.alter`.

    Changes are made in the order in which they are added, in one commit, and each finds the names
    that the ones before have left. A column is named by its path: fields of a struct are
    ``at.lon``, those of structs in a list ``items.element.width``, and of those in a map
    ``prices.value.cost``. Columns of the record key, the partition path and the ordering keep name
    and type, as in Hudi's ALTER TABLE.

    Examples
    --------
    >>> change = table.alter().rename("fare", "cost")
    >>> change = change.add("tip", pa.float64(), after="cost")
    >>> print(change.drop("note").execute())
    altered at ..., columns are uuid string, city string, cost double, tip double, ts int64
    """

    def __init__(self, begins: Begins, writes: Writes) -> None:
        self._begins: Final = begins
        self._writes: Final = writes
        self._changes: Final = list[Alter]()

    def add(
        self,
        path: str,
        kind: pa.DataType,
        *,
        first: bool = False,
        after: str | None = None,
        comment: str = "",
    ) -> TableAlteration:
        """Add a column or a field of a struct, which is null in all rows so far.

        Parameters
        ----------
        path : str
            Its name, after the path of its struct.
        kind : pyarrow.DataType
            Its type.
        first : bool
            Whether it comes before all others, instead of after them.
        after : str, optional
            The name of the one that it comes after.
        comment : str
            What it is.
        """
        place = partial(AlteredColumns.add, first=first, after=after)
        return self._with(partial(place, path=path, kind=kind, comment=comment))

    def rename(self, path: str, name: str) -> TableAlteration:
        """Give a column or a field another name.

        Parameters
        ----------
        path : str
            Which one.
        name : str
            Its new name, without the path of its struct.
        """
        return self._with(partial(AlteredColumns.rename, path=path, name=name))

    def drop(self, path: str) -> TableAlteration:
        """Take a column or a field away; one that is added under its name later is another one.

        Parameters
        ----------
        path : str
            Which one.
        """
        return self._with(partial(AlteredColumns.drop, path=path))

    def move(self, path: str, *, first: bool = False, after: str | None = None) -> TableAlteration:
        """Put a column or a field at another place.

        Parameters
        ----------
        path : str
            Which one.
        first : bool
            Whether it comes before all others.
        after : str, optional
            The name of the one that it comes after.
        """
        return self._with(partial(AlteredColumns.move, path=path, first=first, after=after))

    def retype(self, path: str, kind: pa.DataType) -> TableAlteration:
        """Give a column or a field a type that holds its values too.

        As in Hudi whole numbers become longer ones, floating-point numbers, decimals or strings;
        floating-point numbers doubles, decimals or strings; decimals wider ones or strings; dates
        strings; and strings dates or decimals. A value that does not fit is an error to readers.

        Parameters
        ----------
        path : str
            Which one.
        kind : pyarrow.DataType
            Its new type.
        """
        return self._with(partial(AlteredColumns.retype, path=path, kind=kind))

    def comment(self, path: str, text: str) -> TableAlteration:
        """Say what a column is.

        Parameters
        ----------
        path : str
            Which one.
        text : str
            What it is; empty for no comment.
        """
        return self._with(partial(AlteredColumns.comment, path=path, text=text))

    def make_nullable(self, path: str) -> TableAlteration:
        """Let a column that another engine has made required be null.

        Parameters
        ----------
        path : str
            Which one.
        """
        return self._with(partial(AlteredColumns.make_nullable, path=path))

    def execute(self, options: Mapping[str, str] | None = None, *, dry: bool = False) -> Alteration:
        """Make the changes, in one commit that rewrites no file.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options of this write. A numbered alteration is recognised by its changes.
        dry : bool
            Whether to change nothing, and only say what the columns would be.

        Returns
        -------
        Alteration
            The commit, and the columns before and after.

        Raises
        ------
        SchemaError
            There is no change, or one that cannot be made.
        WriteConflictError
            Another writer was at work; nothing was changed.
        HoodieError
            The alteration was refused or failed; the table is as before.
        """
        coordinator = self._begins(options)
        given = replace(coordinator.options, operation=None, allow_empty_commit=True)
        coordinator = replace(coordinator, options=given)
        alter = partial(altered, tuple(self._changes))
        would = _result(None, with_columns(coordinator.preview_alteration(alter)))
        if dry or not would:
            return would

        def write() -> Alteration:
            batch = with_columns(coordinator.begin_alteration(alter))
            done = self._writes(coordinator, batch, ())
            return _result(done.instant_time, batch.plan)

        return retry_after_conflicts(coordinator.options, write)

    def _with(self, change: Alter) -> TableAlteration:
        self._changes.append(change)
        return self


def _result(time: str | None, plan: WritePlan) -> Alteration:
    assert plan.columns is not None, "`altered` made the plan"
    made = plan.columns
    return Alteration(time, made.before, plan.schema, made.changes, made.is_committed)

"""Commands that change a table: each shows what it would do, and asks before it does it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hoodie_ds.cli.checks import show
from hoodie_ds.cli.creation import FORMATS, rows_of_files
from hoodie_ds.cli.target import Ended, Misused, Target, on_table

if TYPE_CHECKING:
    from hoodie_ds.api.hoodie_table import HoodieTable
    from hoodie_ds.services.context import Progress
    from hoodie_ds.sink.messages import WriteResult

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Step = Callable[["HoodieTable", bool, "Progress | None"], object]
"""Changes a table, or with True returns what it would change; reports its progress."""

_LISTED: Final = 20
"""Parts of a plan that are listed at most."""


def changing(function: FunctionT, is_cheap: bool = True) -> Callable[..., None]:
    """Make a command of a function that returns the `Step` to carry out; see `carry_out`."""

    @wraps(function)
    def command(target: Target, dry_run: bool, yes: bool, **rest: object) -> None:
        carry_out(target, function(**rest), dry_run, yes, is_cheap)

    return on_table(with_question(command))


def changing_rows(function: FunctionT) -> Callable[..., None]:
    """Make a command of a function whose `Step` must read the rows to say what it would do."""
    return changing(function, is_cheap=False)


def with_question(function: FunctionT) -> FunctionT:
    """Give a command the options of its question."""
    click.option("--yes", "-y", is_flag=True, help="Do it without a question.")(function)
    return click.option("--dry-run", is_flag=True, help="Only say what would be done.")(function)


def carry_out(target: Target, step: Step, dry_run: bool, yes: bool, is_cheap: bool = True) -> None:
    """Show what a step would do, ask unless `yes`, do it unless `dry_run`, and show the result.

    Where it is not cheap to say, only a question or `dry_run` shows it.
    """
    from hoodie_ds.cli.render import progress

    table = target.table()
    if (is_cheap or dry_run or not yes) and not _agreed(target, table, step, dry_run, yes):
        return
    with progress("working") as advance:
        done = step(table, False, advance)
    click.echo(f"done: {done}" if done else done)


def _agreed(target: Target, table: HoodieTable, step: Step, dry_run: bool, yes: bool) -> bool:
    """Show what a step would do, and return whether to do it: so `yes` or the user says."""
    would = step(table, True, None)
    summary = target.reached(str(would))
    click.echo(summary if dry_run else summary.removeprefix("dry "))
    if not would:
        return False
    for line in _parts(would):
        click.echo(f"  {line}")
    if not (dry_run or yes):
        click.confirm("Do it?", abort=True, err=True)
        if _taken(would) is not None:
            _check_unchanged(would, step(table, True, None))
    return not dry_run


def _check_unchanged(shown: object, now: object) -> None:
    """Refuse to lose anything else than was shown before the question."""
    if _taken(shown) != _taken(now):
        raise Ended(f"the table has changed since the question: {now}; run the command again")


def _taken(would: object) -> object:
    """Return what a step would delete or keep; None if the step itself decides."""
    from hoodie_ds.services.undoing import Undoing

    if isinstance(would, Undoing):
        return [loss.time for loss in would.losses]
    if isinstance(would, PartitionLoss):
        return would.partitions
    known = isinstance(would, (str, MatchedRows, MergedRows))
    return str(would).partition(":")[0] if known else None


def _parts(would: object) -> Iterator[str]:
    """Yield the parts of a step, and the number of those that are left out."""
    from hoodie_ds.services.orphans import Orphans
    from hoodie_ds.services.results import ServiceResult
    from hoodie_ds.services.undoing import Undoing
    from hoodie_ds.services.upgrade.version_change import VersionChange
    from hoodie_ds.sync.results import CatalogSync

    parts: list[object] = []
    if isinstance(would, Undoing):
        parts = list(would.losses)
    elif isinstance(would, Orphans):
        parts = list(would.files)
    elif isinstance(would, ServiceResult):
        parts = [str(one) if hasattr(one, "state") else repr(one) for one in would]
    elif isinstance(would, VersionChange):
        changes = sorted(would.changed.items())
        parts = [f"{key} {'goes' if value is None else f'= {value}'}" for key, value in changes]
    elif isinstance(would, CatalogSync):
        parts = list(would.tables)
    elif isinstance(would, PartitionLoss):
        parts = list(would.partitions)
    yield from map(str, parts[:_LISTED])
    if len(parts) > _LISTED:
        yield f"and {len(parts) - _LISTED:,} more"


@click.command()
@changing
def compact() -> Step:
    """Merge log files into base files (merge-on-read), pending plans first."""
    return lambda table, dry, progress: table.compact(dry=dry, progress=progress)


@click.command()
@changing
def clean() -> Step:
    """Delete files of old slices, by the options hoodie.clean.*."""
    return lambda table, dry, _: table.clean(dry=dry)


@click.command()
@changing
def archive() -> Step:
    """Move the oldest instants into the archive, by hoodie.keep.max.commits."""
    return lambda table, dry, _: table.archive(dry=dry)


@click.command()
@changing
def cluster() -> Step:
    """Rewrite small file groups into larger, sorted ones."""
    return lambda table, dry, progress: table.cluster(dry=dry, progress=progress)


@click.command()
@changing
@click.argument("instant", required=False)
def rollback(instant: str | None) -> Step:
    """Roll back the write INSTANT, the newest commit by default; its rows are lost."""
    return lambda table, dry, _: table.rollback(instant, dry=dry)


@click.command()
@changing
@click.argument("instant", required=False)
@click.option("--user", default="", help="Who makes it.")
@click.option("--comments", default="", help="Why.")
@click.option("--delete", is_flag=True, help="Delete the savepoint instead.")
def savepoint(instant: str | None, user: str, comments: str, delete: bool) -> Step:
    """Keep the files of the commit INSTANT, the newest by default, for a restore."""
    if delete and instant is None:
        raise Misused("--delete needs the INSTANT of the savepoint")

    def step(table: HoodieTable, dry: bool, _: Progress | None) -> object:
        if delete and instant is not None:
            found, done = table.delete_savepoint(instant, dry=dry), "deleted"
        else:
            found = table.savepoint(instant, user=user, comments=comments, dry=dry)
            done = "made"
        return f"savepoint {found}" if dry else f"{done} savepoint {found.time}"

    return step


@click.command()
@changing
@click.argument("instant")
def restore(instant: str) -> Step:
    """Restore the table to the savepoint or write INSTANT; all later writes are lost."""
    return lambda table, dry, _: table.restore(instant, dry=dry)


@click.command()
@changing
def cleanup() -> Step:
    """Delete data files that no commit names: leftovers of late or dead writers."""
    return lambda table, dry, _: table.cleanup(dry=dry)


@click.command()
@changing
@click.argument("partitions", nargs=-1, required=True)
@click.option("--exact", is_flag=True, help="A star in a path is a star.")
def delete_partition(partitions: tuple[str, ...], exact: bool) -> Step:
    """Delete whole PARTITIONS, in which a star matches any string; their rows are lost."""

    def step(table: HoodieTable, dry: bool, _: Progress | None) -> object:
        if dry:
            return PartitionLoss.of(table, partitions, exact)
        return f"deleted at {table.delete_partitions(partitions, exact=exact).instant_time}"

    return step


@click.command()
@changing_rows
@click.option(
    "--where", multiple=True, required=True, help='Condition such as "city = oslo"; all must hold.'
)
def delete(where: tuple[str, ...]) -> Step:
    """Delete the rows that meet conditions."""

    def step(table: HoodieTable, dry: bool, _: Progress | None) -> object:
        return MatchedRows("deleted", table.delete(where=[*where], dry=dry))

    return step


@click.command()
@changing_rows
@click.option("--where", multiple=True, help='Condition such as "city = oslo"; all must hold.')
@click.option(
    "--set", "given", multiple=True, help='New value such as "fare = 2.5" or "fare is null".'
)
@click.option("--expr", "computed", multiple=True, help='SQL such as "fare = fare * 1.1".')
def update(where: tuple[str, ...], given: tuple[str, ...], computed: tuple[str, ...]) -> Step:
    """Set columns of the rows that meet conditions, of all by default, to new values."""
    if not given and not computed:
        raise Misused("give --set or --expr, what columns become")

    def step(table: HoodieTable, dry: bool, _: Progress | None) -> object:
        values = dict([*(_new_value(one, table) for one in given), *map(_expression, computed)])
        return MatchedRows("updated", table.update(values, [*where], dry=dry))

    return step


@click.command()
@changing_rows
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--on",
    multiple=True,
    required=True,
    help='Column by which rows match, or such as "target.id = source.key"; all must be equal.',
)
@click.option("--format", "kind", type=click.Choice(FORMATS), help="By the name by default.")
@click.option(
    "--delete-where",
    multiple=True,
    help='Delete rows that match one for which, say, "source.op = D"; all must hold.',
)
@click.option("--update-where", multiple=True, help='Update only if, say, "source.ts > target.ts".')
@click.option("--insert-where", multiple=True, help='Insert only rows with, say, "source.op != D".')
@click.option("--no-update", is_flag=True, help="Leave rows that match as they are.")
@click.option("--no-insert", is_flag=True, help="Insert no rows.")
@click.option("--delete-others", is_flag=True, help="Delete rows that match none of the files.")
def merge(
    files: tuple[Path, ...],
    on: tuple[str, ...],
    kind: str | None,
    no_update: bool,
    no_insert: bool,
    delete_others: bool,
    **where: tuple[str, ...],
) -> Step:
    """Merge Parquet, CSV or JSON FILES into the table: update rows that match, insert others."""

    def step(table: HoodieTable, dry: bool, _: Progress | None) -> object:
        merging = table.merge(rows_of_files(files, kind, table.schema), [*on])
        if where["delete_where"]:
            merging.when_matched_delete([*where["delete_where"]])
        if not no_update:
            merging.when_matched_update_all([*where["update_where"]])
        if not no_insert:
            merging.when_not_matched_insert_all([*where["insert_where"]])
        if delete_others:
            merging.when_not_matched_by_source_delete()
        return MergedRows(merging.execute(dry=dry))

    return step


def _new_value(text: str, table: HoodieTable) -> tuple[str, object]:
    """Read a new value in the form of a condition that it meets."""
    from hoodie_ds.filters.given import predicate_of
    from hoodie_ds.filters.predicate import Comparison, IsNull, Op

    match predicate_of(text, table.inspect.schema(), "--set"):
        case Comparison((name,), Op.EQ, value):
            return name, value
        case IsNull((name,), False):
            return name, None
    raise Misused(f"--set {text!r} is no new value; write COLUMN = VALUE, or COLUMN is null")


def _expression(text: str) -> tuple[str, object]:
    from hoodie_ds.filters.sql_expression import expr

    name, equals, sql = text.partition("=")
    if not equals:
        raise Misused(f"--expr {text!r} is no new value; write COLUMN = SQL")
    return name.strip(), expr(sql)


class MatchedRows:
    """Rows that meet conditions, and what becomes of them; false if there are none."""

    def __init__(self, what: str, result: WriteResult) -> None:
        self._what, self._number = what, result.updated + result.deleted
        self._time = result.instant_time

    def __bool__(self) -> bool:
        return self._number > 0

    def __str__(self) -> str:
        from hoodie_ds.services.results import counted

        if not self:
            return "no row to change, nothing to do"
        rows = counted(self._number, "row")
        if not self._time:  # it was not done
            return f"{rows} would be {self._what}"
        return f"{rows} {self._what} at {self._time}"


class MergedRows:
    """What becomes of rows in a merge; false if nothing does."""

    def __init__(self, result: WriteResult) -> None:
        self._counts = result.inserted, result.updated, result.deleted
        self._time = result.instant_time

    def __bool__(self) -> bool:
        return any(self._counts)

    def __str__(self) -> str:
        if not self:
            return "no row to change, nothing to do"
        inserted, updated, deleted = self._counts
        rest = f"inserted, {updated:,} updated, {deleted:,} deleted"
        if not self._time:  # it was not done
            return f"{inserted:,} would be {rest}"
        return f"{inserted:,} {rest} at {self._time}"


class PartitionLoss:
    """Partitions that would be deleted, with their file groups and bytes; false if none."""

    def __init__(self, partitions: tuple[str, ...], groups: int, size: int) -> None:
        self.partitions = partitions
        self._groups, self._size = groups, size

    @classmethod
    def of(cls, table: HoodieTable, given: tuple[str, ...], exact: bool) -> PartitionLoss:
        """Return what a delete of given partitions loses; a table without partitions is refused."""
        if not table.properties.partition_fields:
            raise Misused(f"table {table.properties.name!r} has no partitions")
        forms = [re.escape(one) if exact else ".*".join(map(re.escape, one.split("*")))
                 for one in given]  # fmt: skip
        found = [
            row
            for row in table.inspect.files().partitions
            if row.file_groups and any(re.fullmatch(form, row.partition) for form in forms)
        ]
        size = sum(row.base_bytes + row.log_bytes for row in found)
        names = tuple(row.partition for row in found)
        return cls(names, sum(row.file_groups for row in found), size)

    def __bool__(self) -> bool:
        return bool(self.partitions)

    def __str__(self) -> str:
        from hoodie_ds.services.results import counted, size_text

        if not self.partitions:
            return "no such partition, nothing to do"
        partitions = counted(len(self.partitions), "partition")
        return f"{partitions}, {counted(self._groups, 'file group')} ({size_text(self._size)}) lost"


@click.command()
@changing
@click.option("--to", type=click.IntRange(8, 9), required=True, help="Table version.")
def upgrade(to: int) -> Step:
    """Upgrade the table to a later version."""
    return lambda table, dry, _: table.upgrade(to, dry=dry)


@click.command()
@changing
@click.option("--to", type=click.IntRange(6, 8), required=True, help="Table version.")
def downgrade(to: int) -> Step:
    """Downgrade the table to an earlier version."""
    return lambda table, dry, _: table.downgrade(to, dry=dry)


@click.command()
@changing
@click.argument("num_buckets", type=click.IntRange(min=1))
@click.option("--rules", help="Partitions with another number: regex,number;regex,number.")
def rescale_buckets(num_buckets: int, rules: str | None) -> Step:
    """Rewrite a table with a bucket index into NUM_BUCKETS buckets a partition, as one commit."""
    return lambda table, dry, progress: table.rescale_buckets(
        num_buckets, rules, dry=dry, progress=progress
    )


@click.command()
@click.argument("catalog", type=click.Choice(["hive", "glue"]))
@changing
def sync(catalog: str) -> Step:
    """Register the table in a catalog, or update its entry: `hoodie-py sync hive PATH`."""
    from hoodie_ds.config.catalog_options import CatalogOptions

    modes = {"hive": "hms", "glue": "glue"}
    options = {CatalogOptions.mode.key: modes[catalog]}
    return lambda table, dry, _: table.sync_catalog(options, dry=dry)


@click.command()
@click.argument("action", type=click.Choice(["sync"]))
@changing
def delta(action: str) -> Step:
    """Create or repair the table's Delta log: `hoodie-py delta sync PATH`."""
    return lambda table, dry, _: table.sync_delta(dry=dry)


@click.command()
@click.argument("action", type=click.Choice(["create", "drop", "check"]))
@on_table
@with_question
@click.option("--partition", "partitions", multiple=True, help="Partition to drop; all by default.")
@click.option("--repair", is_flag=True, help="Make anew what the check finds wrong.")
def metadata(
    target: Target,
    action: str,
    partitions: tuple[str, ...],
    repair: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Create the metadata table, by hoodie.metadata.index.*, drop it, or compare it with files."""
    if partitions and action != "drop":
        raise Misused("--partition is for drop; give --conf hoodie.metadata.index.* to create")
    if repair and action != "check":
        raise Misused("--repair is for check")
    if action == "check" and not repair:
        show(target, target.table().inspect.verify_metadata_table())
        return
    steps: dict[str, Step] = {
        "create": lambda table, dry, _: table.create_metadata_table(dry=dry),
        "drop": lambda table, dry, _: table.drop_metadata_table(partitions or None, dry=dry),
        "check": lambda table, dry, _: table.repair_metadata_table(dry=dry),
    }
    carry_out(target, steps[action], dry_run, yes)


COMMANDS: Final = (
    compact, clean, archive, cluster, rollback, savepoint, restore, cleanup, delete, update, merge,
    delete_partition, upgrade, downgrade, rescale_buckets, sync, delta, metadata,
)  # fmt: skip

"""Commands that create a table and load it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hoodie_ds.cli.target import Ended, Misused, Target, on_table

if TYPE_CHECKING:
    import pyarrow as pa

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_WRITE: Final = "hoodie.datasource.write."
_KEYS: Final = {
    "name": "hoodie.table.name",
    "key": f"{_WRITE}recordkey.field",
    "partition": f"{_WRITE}partitionpath.field",
    "ordering": f"{_WRITE}precombine.field",
    "table_type": f"{_WRITE}table.type",
    "buckets": "hoodie.bucket.index.num.buckets",
}
FORMATS: Final = ("parquet", "csv", "json")
_SQL_TYPES: Final = {
    "bigint": "int64", "long": "int64", "int": "int32", "integer": "int32", "date": "date32",
    "timestamp_ntz": "timestamp[us]",
}  # fmt: skip
COLUMN_TYPES: Final = (
    "types are such as string, int, bigint, double, boolean, date, timestamp or decimal(10,2)"
)
_COLUMN: Final = (
    f"write a name and a type; {COLUMN_TYPES}; --like takes lists, structs and all else"
)
_TYPES: Final = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def new_table(function: FunctionT) -> FunctionT:
    """Give a command the usual options of a new table; ``--conf`` takes all others."""
    for name, text in (
        ("buckets", "Buckets of a partition; 4 by default, where there is a record key."),
        ("type", "cow: copy-on-write (the default), or mor: merge-on-read."),
        ("ordering", "Column by which the newer of two rows is known."),
        ("partition", "Columns of the partition path, with commas."),
        ("key", "Columns of the record key, with commas; none without."),
        ("name", "Name of the table; that of the folder by default."),
    ):
        types = click.Choice(list(_TYPES), case_sensitive=False)
        kind = {"buckets": click.IntRange(1), "type": types}.get(name)
        destination = "table_type" if name == "type" else name
        click.option(f"--{name}", destination, type=kind, help=text)(function)
    return function


@click.command()
@on_table
@new_table
@click.option("--columns", help='Names and types of SQL or Arrow: "id string, ts timestamp".')
@click.option("--like", type=click.Path(exists=True, dir_okay=False), help="A Parquet file.")
def create(target: Target, columns: str | None, like: str | None, **table: object) -> None:
    """Create an empty table with the columns given, or with those of a Parquet file."""
    from hoodie_ds.services.results import counted

    if (columns is None) == (like is None):
        raise Misused("give either --columns or --like")
    schema = _schema_of(str(like)) if columns is None else _schema(columns)
    if _exists(target):
        raise Ended(f"{target.path} holds a table already; `hoodie-py load` writes rows into it")
    made = _target(target, table).table()
    made.insert(schema.remove_metadata().empty_table())
    count = counted(len(schema), "column")
    click.echo(f"{target.path}: {count}, version {made.properties.version}")


@click.command()
@on_table
@new_table
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--format", "kind", type=click.Choice(FORMATS), help="By the name by default.")
@click.option(
    "--operation",
    type=click.Choice(["upsert", "insert", "overwrite"]),
    help="upsert by default, and insert into a table without record keys.",
)
def load(
    target: Target,
    files: tuple[Path, ...],
    kind: str | None,
    operation: str | None,
    **table: object,
) -> None:
    """Write Parquet, CSV or JSON FILES (a row a line) into a table, as one commit."""
    from hoodie_ds.cli.render import progress
    from hoodie_ds.errors import TableNotFoundError

    chosen = _target(target, table)
    made = chosen.table()
    try:
        known, keyed = made.schema, bool(made.properties.record_key_fields)
    except TableNotFoundError:
        known, keyed = None, _KEYS["key"] in chosen.options
    rows = rows_of_files(files, kind, known)
    operation = operation or ("upsert" if keyed else "insert")
    with progress("loading"):
        done = getattr(made, operation)(rows)
    if known is None and done.instant_time:
        new = made.properties
        keys = ", ".join(new.record_key_fields) or "none"
        click.echo(f"new table {new.name}, version {new.version}, record key {keys}")
    click.echo(
        f"{done.instant_time or 'no commit'}: {done.inserted:,} inserted, "
        f"{done.updated:,} updated, {done.deleted:,} deleted"
    )


def _target(target: Target, table: dict[str, object]) -> Target:
    """Return the table with the options of a new one."""
    given = {key: table[name] for name, key in _KEYS.items() if table.get(name) is not None}
    chosen = {key: _TYPES.get(str(value), str(value)) for key, value in given.items()}
    name = {_KEYS["name"]: target.path.rstrip("/").rpartition("/")[2]}
    known = {} if _exists(target) else name
    return Target(target.path, {**known, **target.options, **chosen})


def _exists(target: Target) -> bool:
    from hoodie_ds.errors import TableNotFoundError

    try:
        return bool(target.table().properties)
    except TableNotFoundError:
        return False


def _schema_of(file: str) -> pa.Schema:
    """Return the columns of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        remedy = "name a Parquet file, or give --columns"
        raise Misused(f"--like: {file}: {' '.join(str(error).split())}; {remedy}") from error


def _schema(text: str) -> pa.Schema:
    """Parse columns of names and types; a comma in brackets belongs to the type."""
    import pyarrow as pa

    fields = []
    for part in re.split(r",(?![^(\[]*[)\]])", text):
        name, _, kind = part.strip().partition(" ")
        try:
            fields.append(pa.field(name, type_named(kind.strip().lower())))
        except ValueError:
            raise Misused(f"--columns: {part.strip()!r}: {_COLUMN}") from None
    return pa.schema(fields)


def type_named(name: str) -> pa.DataType:
    """Return the type with a name of Arrow or SQL; `ValueError` if there is none."""
    import pyarrow as pa

    decimal = re.fullmatch(r"decimal(?:128)?\((\d+)\s*,\s*(\d+)\)", name)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    stamp = re.fullmatch(r"timestamp(?:\[(ms|us),\s*tz=utc\])?", name)
    if stamp is not None:
        return pa.timestamp(stamp[1] or "us", "UTC")
    return pa.type_for_alias(_SQL_TYPES.get(name, name))


def rows_of_files(
    files: tuple[Path, ...], kind: str | None, known: pa.Schema | None
) -> pa.RecordBatchReader:
    """Read files of one format batch by batch, CSV and JSON by the types of known columns."""
    import pyarrow as pa
    import pyarrow.dataset as pads

    kinds = {kind} if kind else {_format_of(one) for file in files for one in _files_in(file)}
    if len(kinds) > 1:
        raise Misused(f"the files are of several formats, {', '.join(sorted(kinds))}")
    try:
        parts = [pads.dataset(str(file), format=kinds.copy().pop()) for file in files]
        schema = pa.unify_schemas([part.schema for part in parts]).remove_metadata()
        if kinds == {"csv"}:
            schema = _with_leading_zeros(files, schema)
        if known is not None and kinds != {"parquet"}:
            fields = (known.field(f.name) if f.name in known.names else f for f in schema)
            schema = pa.schema(map(_plain, fields))
        found = [
            pads.dataset(str(file), format=kinds.copy().pop(), schema=schema) for file in files
        ]
        rows = pads.dataset(found).scanner().to_reader()
    except pa.ArrowException as error:
        raise Misused(f"{files[0]}: {error}") from error
    return pa.RecordBatchReader.from_batches(rows.schema, _checked(rows))


def _plain(column: pa.Field) -> pa.Field:
    """Return a vector as a plain list, as Arrow parses no lists of a fixed size."""
    import pyarrow as pa

    kind = column.type
    is_vector = pa.types.is_fixed_size_list(kind)
    return column.with_type(pa.list_(kind.value_type)) if is_vector else column


def _with_leading_zeros(files: tuple[Path, ...], schema: pa.Schema) -> pa.Schema:
    """Make columns of CSV files strings that hold such as 007, which is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as pads

    whole = [field.name for field in schema if pa.types.is_integer(field.type)]
    texts = pa.schema([f.with_type(pa.string()) if f.name in whole else f for f in schema])
    parts = [pads.dataset(str(file), format="csv", schema=texts) for file in files]
    codes: set[str] = set()
    for rows in pads.dataset(parts).to_batches(columns=whole) if whole else ():
        has_zeros = (pc.match_substring_regex(column, "^[+-]?0[0-9]") for column in rows.columns)
        codes.update(n for n, found in zip(whole, has_zeros, strict=True) if pc.any(found).as_py())
    return pa.schema([texts.field(f.name) if f.name in codes else f for f in schema])


def _checked(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches; a line with other types than the columns' is an error of the files."""
    import pyarrow as pa

    try:
        yield from rows
    except pa.ArrowException as error:
        raise Misused(f"the files do not have the types of the columns: {error}") from error


def _files_in(file: Path) -> list[Path]:
    """Return the files of a folder, without hidden ones."""
    if not file.is_dir():
        return [file]
    found = [one for one in sorted(file.rglob("*")) if one.is_file()]
    return [one for one in found if not _is_hidden(one.relative_to(file))] or [file]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _format_of(file: Path) -> str:
    suffix = file.suffix.lstrip(".").lower().replace("jsonl", "json").replace("ndjson", "json")
    if suffix not in FORMATS:
        raise Misused(f"{file}: its name does not say its format; give --format")
    return suffix


COMMANDS: Final = (create, load)

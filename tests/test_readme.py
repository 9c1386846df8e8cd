"""What the README and ``conf/`` promise: option tables in step, files that parse, commands."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from hoodie_ds.config.java_properties import parse_properties
from hoodie_ds.config.kinds import Operation, TableType
from hoodie_ds.config.option_table import with_option_tables
from hoodie_ds.config.read_catalog import READ_OPTIONS
from hoodie_ds.config.table_properties import TableProperties
from hoodie_ds.config.write_catalog import WRITE_OPTIONS
from hoodie_ds.config.write_options import WriteOptions

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_option_tables_are_those_of_the_code() -> None:
    stale = "run: python -m hoodie_ds.config.option_table README.md"
    assert with_option_tables(README) == README, stale


def test_the_tables_name_every_option_once() -> None:
    lines = [line for line in README.splitlines() if line.startswith("| `")]
    for option in WRITE_OPTIONS:
        found = [
            line for line in lines if line.startswith((f"| `{option.key}` ", f"| `{option.key}`<"))
        ]
        # some, the base path for one, are options of writes and of reads
        assert len(found) == (2 if option in READ_OPTIONS else 1), option.key


def test_two_commands_take_a_fresh_machine_all_the_way() -> None:
    commands = [
        line for block in blocks("sh") for line in block.splitlines() if ".ci/setup" in line
    ]
    assert commands == [
        "sh .ci/setup demo && .venv/bin/hoodie-flights",
        'sh .ci/setup test && .venv/bin/python -m pytest -m "not slow and not jvm"',
    ]


@pytest.mark.parametrize("code", blocks("python"))
def test_examples_are_short_and_parse(code: str) -> None:
    ast.parse(code)
    assert len(code.splitlines()) <= 12


@pytest.mark.parametrize(
    ("name", "kind", "keys"),
    [
        ("mor", TableType.MERGE_ON_READ, 1),
        ("cow", TableType.COPY_ON_WRITE, 1),
        ("append_only", TableType.COPY_ON_WRITE, 0),
    ],
)
def test_the_example_files_make_tables(name: str, kind: TableType, keys: int) -> None:
    path = PROJECT / "conf" / f"{name}.properties"
    options = WriteOptions.parse({**parse_properties(path.read_bytes(), str(path)), "path": "/t"})
    properties = TableProperties.create(options)
    assert properties.table_type is kind
    assert len(properties.record_key_fields) == keys
    assert options.operation in ((None, Operation.UPSERT) if keys else (Operation.INSERT,))


def test_there_is_no_example_file_without_a_test() -> None:
    files = {path.stem for path in (PROJECT / "conf").glob("*.properties")}
    assert files == {"mor", "cow", "append_only"}


def test_every_test_that_the_traceability_names_exists() -> None:
    text = (PROJECT / "tests" / "traceability.md").read_text()
    named = re.findall(r"`((?:unit|spark|interop|golden)/[\w/.]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 25
    for path, name in named:
        source = (PROJECT / "tests" / path).read_text()
        assert not name or f"def {name}(" in source, f"{path}::{name}"
    for module in re.findall(r"`((?!unit|spark|interop|golden)\w+/(?:\w+\.py)?)`", text):
        assert (PROJECT / "hoodie_ds" / module).exists(), module

"""What the documents promise: option tables in step, examples that run, links that lead somewhere.

The examples with Spark are run by ``tests/spark/test_documented_examples.py``.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds.config.enums import Operation, TableType
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.option_table import with_option_tables
from hoodie_ds.config.options.read import READ_OPTIONS
from hoodie_ds.config.options.write import WRITE_OPTIONS
from hoodie_ds.config.properties.java_properties import parse_properties
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.streamer import main as streamer
from tests.documents import PROJECT, blocks, document, headings, links, run_example

README = document("README.md")
REFERENCE = document("conf/README.md")
DOCUMENTS = [
    path.relative_to(PROJECT).as_posix()
    for path in sorted(PROJECT.rglob("*.md"))
    if not any(part.startswith(".") for part in path.relative_to(PROJECT).parts)
]


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_the_option_tables_are_those_of_the_code() -> None:
    stale = "run: python -m hoodie_ds.config.option_table conf/README.md"
    assert with_option_tables(REFERENCE) == REFERENCE, stale


def test_the_tables_name_every_option_once() -> None:
    lines = [line for line in REFERENCE.splitlines() if line.startswith("| `")]
    for option in WRITE_OPTIONS:
        found = [
            line for line in lines if line.startswith((f"| `{option.key}` ", f"| `{option.key}`<"))
        ]
        # some, the base path for one, are options of writes and of reads
        assert len(found) == (2 if option in READ_OPTIONS else 1), option.key


@pytest.mark.parametrize("text", [README, REFERENCE], ids=["README.md", "conf/README.md"])
def test_every_option_that_is_named_is_known(text: str) -> None:
    named = set(re.findall(r"[`\"](hoodie\.[a-z][\w.]*[a-z])[`\"=]", text))
    assert len(named) > 5
    problems = {key: GivenOptions.collect({key: "x"}).problems for key in named}
    unknown = {key for key, found in problems.items() if "unknown option" in str(found)}
    assert unknown == set()


def test_two_commands_take_a_fresh_machine_all_the_way() -> None:
    lines = [line for block in blocks(README, "sh") for line in block.splitlines()]
    assert [line for line in lines if ".ci/setup" in line] == [
        "sh .ci/setup demo && .venv/bin/hoodie-flights",
        'sh .ci/setup test && .venv/bin/python -m pytest -n 2 -m "not slow and not jvm"',
    ]


@pytest.mark.parametrize("code", blocks(README, "python") + blocks(REFERENCE, "python"))
def test_examples_are_short(code: str) -> None:
    compile(code, "<example>", "exec", dont_inherit=True)
    assert len(code.splitlines()) <= 12


def test_the_example_of_the_library_runs(tmp_path: Path) -> None:
    options, *_, library = blocks(README, "python")
    names: dict[str, Any] = {}
    for code in (options, library):
        run_example(code, names, tmp_path)
    left = names["table"].read().to_pylist()
    assert [(row["uuid"], row["fare"]) for row in left] == [("b", 12.0)]


def test_the_example_of_a_merge_hook_runs(tmp_path: Path) -> None:
    options, *_, library = blocks(README, "python")
    names: dict[str, Any] = {}
    hook = next(code for code in blocks(REFERENCE, "python") if "merge_hook" in code)
    for code in (options, library, hook, hook):
        run_example(code, names, tmp_path)
    totals = names["hoodie_ds"].HoodieTable(tmp_path / "totals", merge_hook=names["add_up"]).read()
    assert sorted(totals["fare"].to_pylist()) == [2 * 9.5, 2 * 12.0]


def test_the_example_of_the_streamer_has_its_options() -> None:
    text = next(code for code in blocks(REFERENCE, "sh") if "hoodie-streamer" in code)
    command, _, _ = text.partition("\n\n")
    name, *given = shlex.split(command.replace("\\\n", " "))
    given = [str(PROJECT / text) if text == "conf/mor.properties" else text for text in given]
    found = streamer.make_context(name, given).params
    assert found["trigger"] == "10 seconds"
    assert found["source_option"] == ("maxFilesPerTrigger=1",)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_to_files_and_headings(name: str) -> None:
    for file, heading in links(document(name)):
        target = (PROJECT / name).parent / file if file else PROJECT / name
        assert target.exists(), file
        assert not heading or heading in headings(target.read_text("utf-8")), f"{file}#{heading}"


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

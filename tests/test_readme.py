"""What the documents promise: option tables in step, examples that run, links that lead somewhere.

The examples with Spark are run by ``tests/spark/test_documented_examples.py``.
"""

from __future__ import annotations

import re
import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import hoodie_ds.testing
from hoodie_ds.cli.main import SECTIONS
from hoodie_ds.config.enums import Operation, TableType
from hoodie_ds.config.known_options import READ_OPTIONS, WRITE_OPTIONS, collect
from hoodie_ds.config.option_table import with_option_tables
from hoodie_ds.config.properties.java_properties import parse_properties
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.inspection.commit_metrics import commit_metrics
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import storage_to_read
from hoodie_ds.streamer.job import main as streamer
from hoodie_ds.timeline import paths
from tests.cli_runs import run
from tests.documents import PAGES, PROJECT, blocks, document, headings, links, run_example

README = document("README.md")
REFERENCE = document("conf/README.md")
HOUSE = document("hoodie_ds/README.md")
USERS = {name: document(name) for name in ["README.md", "conf/README.md", *PAGES]}
"""What users read."""
PACKAGE = PROJECT / "hoodie_ds"
DOCUMENTS = [
    path.relative_to(PROJECT).as_posix()
    for path in sorted(PROJECT.rglob("*.md"))
    if not any(part.startswith(".") for part in path.relative_to(PROJECT).parts)
]


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_entries_of_the_changelog_are_short() -> None:
    entries = re.findall(r"^- .*$", document("CHANGELOG.md"), re.MULTILINE)
    assert [entry for entry in entries if len(entry) > 160] == []


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


def test_every_option_that_is_named_is_known() -> None:
    text = "\n".join(USERS.values())
    named = set(re.findall(r"[`\"](hoodie\.[a-z][\w.]*[a-z])[`\"=]", text))
    assert len(named) > 50
    problems = {key: collect({key: "x"}).problems for key in named}
    unknown = {key for key, found in problems.items() if "unknown option" in str(found)}
    assert unknown == set()


def test_two_commands_take_a_fresh_machine_all_the_way() -> None:
    lines = [line for block in blocks(README, "sh") for line in block.splitlines()]
    assert [line for line in lines if ".ci/setup" in line] == [
        "sh .ci/setup demo && .venv/bin/python -m examples.flights.demo",
        'sh .ci/setup test && .venv/bin/python -m pytest -n 2 -m "not slow and not jvm" --one-in 3',
    ]


@pytest.mark.parametrize(
    "code", [code for text in USERS.values() for code in blocks(text, "python")]
)
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
    pages = blocks(USERS["docs/guides/writing.md"], "python")
    merge, more = (code for code in pages if "table.merge(" in code)
    run_example(merge, names, tmp_path)
    left = names["table"].read().to_pylist()
    assert sorted((row["uuid"], row["fare"]) for row in left) == [("b", 11.0), ("c", 7.5)]
    run_example(more, names, tmp_path)
    assert (names["merge"].execute().deleted, names["table"].count()) == (1, 2)


def test_the_example_of_a_merge_hook_runs(tmp_path: Path) -> None:
    options, *_, library = blocks(README, "python")
    names: dict[str, Any] = {}
    hook = next(code for code in blocks(USERS["docs/guides/merging.md"], "python"))
    for code in (options, library, hook, hook):
        run_example(code, names, tmp_path)
    totals = names["hoodie_ds"].HoodieTable(tmp_path / "totals", merge_hook=names["add_up"]).read()
    assert sorted(totals["fare"].to_pylist()) == [2 * 9.5, 2 * 12.0]


def streamed(name: str) -> dict[str, Any]:
    """What the first command of a document gives the streamer."""
    text = next(code for code in blocks(USERS[name], "sh") if "hoodie-streamer" in code)
    command, _, _ = text.partition("\n\n")
    name, *given = shlex.split(command.replace("\\\n", " "))
    given = [str(PROJECT / text) if text.startswith("conf/") else text for text in given]
    return streamer.make_context(name, given).params


def test_the_examples_of_the_streamer_have_its_options() -> None:
    found = streamed("docs/guides/streaming.md")
    assert found["trigger"] == "10 seconds"
    assert found["source_option"] == ("maxFilesPerTrigger=1",)
    assert "subscribe=events" in streamed("docs/tutorials/kafka.md")["source_option"]


def test_the_first_table_is_made_and_looked_at(tmp_path: Path) -> None:
    text = USERS["docs/tutorials/first-table.md"]
    names: dict[str, Any] = {}
    for code in blocks(text, "python")[:3]:
        run_example(code, names, tmp_path)
    fares = {row["id"]: row["fare"] for row in names["table"].read().to_pylist()}
    assert fares == {1: 9.5, 2: 13.0, 3: 8.0}
    assert names["table"].read_changes(names["first"])["op"].to_pylist() == ["u", "i"]
    commands = "".join(blocks(text, "sh")).replace("/tmp/", f"{tmp_path}/").splitlines()
    given = [shlex.split(line)[1:] for line in commands if line.startswith("hoodie-py ")]
    assert [command for command, *_ in given] == ["show", "read", "trace", "verify"]
    for arguments in given:
        assert run(*arguments).code == 0, arguments


def test_the_commands_of_the_pages_run(tmp_path: Path) -> None:
    columns = {
        "prices": ["fare", "note"],
        "trips": ["city"],
        "fares": ["fare"],
        "events": ["topic", "partition", "offset", "timestamp"],
    }
    for name, others in columns.items():
        options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
        }
        rows = pa.table({column: [1, 2] for column in ("id", "ts", *others)})
        hoodie_ds.HoodieTable(tmp_path / name, options).upsert(rows)
    pages = [blocks(USERS[page], "sh") for page in PAGES if "first-table" not in page]
    text = "".join(block for page in pages for block in page).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.match("hoodie-py (?!.*://)", line)]
    assert len(lines) > 6
    for line in lines:
        given = re.sub(r"/(tmp|data)/", f"{tmp_path}/", line)
        ended = run(*shlex.split(given)[1:], answer="y\n")
        assert ended.code == 0, f"{line}: {ended}"


def test_the_commands_that_are_named_exist() -> None:
    named = {
        name for text in USERS.values() for name in re.findall(r"\bhoodie-py ([a-z][a-z-]*)", text)
    }
    assert len(named) > 5
    assert named <= {command.name for commands in SECTIONS.values() for command in commands}


def test_the_reference_of_python_has_every_name() -> None:
    named = re.findall(r"^::: (hoodie_ds[\w.]*)$", USERS["docs/reference/api.md"], re.MULTILINE)
    public = [f"hoodie_ds.{name}" for name in hoodie_ds.__all__ if name != "__version__"]
    kit = [name for name in named if name.startswith("hoodie_ds.testing.")]
    assert sorted(set(named) - set(kit)) == sorted(public)
    assert len(named) == len(set(named))
    assert {name.rpartition(".")[2] for name in kit} <= set(hoodie_ds.testing.__all__)
    # mkdocstrings, as a type checker, sees only what is imported in the source
    imported = set(
        re.findall(r"\b\w+\b", (PACKAGE / "__init__.py").read_text().split("__all__")[0])
    )
    assert set(hoodie_ds.__all__) <= imported


def test_the_site_has_every_page() -> None:
    site = document("mkdocs.yml")
    assert [page for page in PAGES if f": {page.removeprefix('docs/')}\n" not in site] == []


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
        ("kafka", TableType.MERGE_ON_READ, 3),
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
    assert files == {"mor", "cow", "append_only", "kafka"}


class Way:
    """Follows the functions of the package that are called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in file.parents:
            self.calls.append((file.relative_to(PACKAGE).as_posix(), frame.f_code.co_name))

    def reaches(self, module: str, entry: str) -> int:
        """When an entry was called first: a function, or any method of a class."""
        name = entry.rpartition(".")[2]
        called = (n for n, call in enumerate(self.calls) if call[0] == module)
        return next(n for n in called if name[0].isupper() or self.calls[n][1] == name)


def batch(folder: Path, number: int) -> Iterator[Callable[[], Any]]:
    """Yield what begins, writes and commits a micro-batch of the walk's kind."""
    names: dict[str, Any] = {}
    run_example(blocks(README, "python")[0], names, folder)
    rows = pa.table({"uuid": ["a", "b"], "city": ["x", "y"], "fare": [1.0, 2.0], "ts": [1, 2]})
    rows = rows.append_column(TASK_COLUMN, pa.array([0, 0], pa.int32()))
    coordinator = Coordinator.of(WriteOptions.parse(names["opts"]))
    begun: list[Any] = []
    yield lambda: begun.append(coordinator.begin(rows.schema.remove(4), "query"))
    sent = rows.to_batches()
    yield lambda: begun.append(write_task(begun[0], TaskId(), BatchId("query", number), sent))
    yield lambda: coordinator.commit([begun[1]])


def test_the_walk_is_that_of_a_micro_batch(tmp_path: Path) -> None:
    parts = HOUSE.split("\n**On ")[1:]
    steps = [re.findall(r"^\| (\d+) \| \[.*?\]\((.*?)\) \| `(.*?)` \|", p, re.M) for p in parts]
    assert [int(step[0]) for part in steps for step in part] == list(range(1, 28))
    assert len({module for part in steps for _, module, _ in part}) == 27  # none comes twice
    for call in batch(tmp_path, 0):
        call()
    for part, call in zip(steps, batch(tmp_path, 1), strict=True):
        way = Way()
        threading.setprofile(way)
        sys.setprofile(way)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        # Spark's own calls, and a class without code of its own, are not seen here
        seen = [s[1:] for s in part if not s[1].startswith(("datasource/", "sink/messages"))]
        reached = [way.reaches(*step) for step in seen]
        assert reached == sorted(reached), sorted(zip(reached, seen, strict=True))


@pytest.fixture
def metrics(tmp_path: Path) -> dict[str, str | int]:
    """Those of a micro-batch of two rows."""
    for call in batch(tmp_path, 0):
        call()
    options = ReadOptions.parse({"path": str(tmp_path / "trips")})
    found = commit_metrics(storage_to_read(options), BatchId("query", 0))
    assert found is not None
    return found


def test_the_table_of_metrics_has_all_names(metrics: dict[str, str | int]) -> None:
    table = (
        USERS["docs/guides/streaming.md"].split("\n| metric | what it is |\n")[1].split("\n\n")[0]
    )
    named = [n for line in table.splitlines() for n in re.findall(r"`(\w+)`", line.split("|")[1])]
    # the first is given by the listener, the last only there if there are any
    assert sorted(named) == sorted({"path", *metrics, "failed_services"})
    assert (metrics["num_rows"], metrics["num_inserts"], metrics["num_files"]) == (2, 2, 2)
    assert int(metrics["written_bytes"]) > 0


def test_the_example_of_a_sink_sends_metrics(metrics: dict[str, str | int]) -> None:
    code = next(
        code for code in blocks(USERS["docs/guides/streaming.md"], "python") if "to_statsd" in code
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("localhost", 0))
        server.settimeout(10)
        port = server.getsockname()[1]
        names: dict[str, Any] = {}
        exec(code.split("listener = ")[0].replace("8125", str(port)), names)
        names["to_statsd"](metrics)
        sent = [server.recv(100).decode() for _ in range(4)]
    assert sent[0] == "trips.num_rows:2|c"
    assert sent[1] == f"trips.written_bytes:{metrics['written_bytes']}|c"


def test_the_rooms_of_the_house_are_those_of_the_package() -> None:
    table = HOUSE.split("\n## The house\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`([\w/]+(?:/|\.py))`", table))
    rooms = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}
    assert rooms | modules <= named
    inner = {f"{path.parent.name}/" for path in PACKAGE.glob("sink/*/__init__.py")}
    assert inner <= named
    for name in named - inner:
        assert (PACKAGE / name).exists(), name


def test_the_files_of_the_protocol_are_those_of_the_code() -> None:
    table = HOUSE.split("\n### Its files\n")[1].split("\n### ")[0]
    below = (f"{paths.TEMP}/", f"{paths.LOCKS}/")
    constants = [text for text in vars(paths).values() if isinstance(text, str)]
    named = [text.removeprefix(f"{paths.HOODIE}/") for text in constants if text.startswith(below)]
    assert len(named) > 5
    for name in named:
        assert f"`{name}" in table, name


def test_what_changes_begin_with_is_in_the_module_that_is_named() -> None:
    steps = HOUSE.split("\n## Where to add what\n")[1]
    found = re.findall(r"`(\w+)`(?:,? which)? of \[[^]]+\]\(([\w/]+\.py)\)", steps)
    assert len(found) > 8
    for name, module in found:
        source = (PACKAGE / module).read_text()
        assert re.search(rf"^(?:def |class )?{name}\b", source, re.MULTILINE), f"{module}: {name}"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "hoodie_ds/README.md"])
def test_every_path_that_is_named_exists(name: str) -> None:
    found = re.findall(r"`((?:hoodie_ds|tests|benchmarks|conf|\.ci)/[\w/.]*)`", document(name))
    assert all((PROJECT / path).exists() for path in found), found


def test_every_test_that_the_traceability_names_exists() -> None:
    text = (PROJECT / "tests" / "traceability.md").read_text()
    suites = "unit|integration|spark|interop|golden"
    named = re.findall(rf"`((?:{suites})/[\w/.]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 25
    for path, name in named:
        source = (PROJECT / "tests" / path).read_text()
        assert not name or f"def {name}(" in source, f"{path}::{name}"
    for module in re.findall(rf"`((?!{suites})\w+/(?:\w+\.py)?)`", text):
        assert (PROJECT / "hoodie_ds" / module).exists(), module

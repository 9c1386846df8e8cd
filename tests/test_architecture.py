"""The house's limits: sizes, doors, names. Which package may import which is import-linter's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "hoodie_ds"
MODULES = sorted(PACKAGE.rglob("*.py"))
MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60

# A library and the one place that may import it.
DOORS = {
    "pyspark": ("datasource/",),
    "py4j": ("datasource/",),
    "fsspec": ("storage/",),
    "obstore": ("storage/",),
    "hdfs_native": ("storage/",),
    "fastavro": ("formats/", "testing/checker.py"),  # the checker knows none of our code
    "click": ("cli/", "streamer/"),
    "rich": ("cli/", "streamer/"),
    "pymetastore": ("sync/",),
    "thrift": ("sync/",),
    "boto3": ("sync/",),
    "botocore": ("sync/", "storage/"),
    "polars": ("api/polars_scan.py",),
    "duckdb": ("inspection/", "filters/sql_expression.py"),
    "logging": ("log.py", "sync/hive.py"),  # the latter silences the logger of thrift
}
PUTS = {"put_if_absent", "put_decisively", "replace", "open_output"}
PUT_INSTANTS = {
    "transaction/completion.py",  # completed files, after the followers of the table
    "transaction/open_instant.py",  # those of the states before
    "metadata_table/compaction.py",  # on the timeline of the metadata table
    "metadata_table/upkeep.py",  # the same
    "metadata_table/delta_commit.py",  # those of the metadata table
}
NO_NAMES = {"utils", "helpers", "common", "base", "constants", "types", "models"}
HIDDEN_INPUT = {
    "time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "uuid.uuid4", "os.getenv",
    "os.environ", "os.urandom", "random.random", "random.randint", "secrets.token_hex",
}  # fmt: skip
MAY_HAVE_HIDDEN_INPUT = {
    "environment.py",
    "streamer/job.py",
}


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Each module by its name."""
    return {name_of(module): ast.parse(module.read_text("utf-8")) for module in MODULES}


def test_modules_are_small_and_say_what_they_are(trees: dict[str, ast.Module]) -> None:
    lines = {
        name_of(m): len(m.read_text("utf-8").splitlines()) - docstring_lines(trees[name_of(m)])
        for m in MODULES
    }
    assert {name: count for name, count in lines.items() if count > MODULE_LINES_MAX} == {}
    assert [name for name, tree in trees.items() if not ast.get_docstring(tree)] == []


def docstring_lines(tree: ast.Module) -> int:
    """Lines that docstrings of functions and classes take."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    documented = (
        n.body[0] for n in ast.walk(tree) if isinstance(n, kinds) and ast.get_docstring(n)
    )
    return sum((text.end_lineno or 0) - text.lineno + 1 for text in documented)


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` on, those of the docstring left out."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if not ast.get_docstring(function):
        return lines
    docstring = function.body[0]
    return lines - ((docstring.end_lineno or 0) - docstring.lineno + 1)


def test_functions_are_small(trees: dict[str, ast.Module]) -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    sizes = {
        (name, function.name): code_lines(function)
        for name, tree in trees.items()
        for function in ast.walk(tree)
        if isinstance(function, kinds)
    }
    assert {where: size for where, size in sizes.items() if size > FUNCTION_LINES_MAX} == {}


def test_each_foreign_library_has_one_door(trees: dict[str, ast.Module]) -> None:
    used = {(name, library) for name, tree in trees.items() for library in imported(tree)}
    behind = {(name, lib) for name, lib in used if lib in DOORS and not name.startswith(DOORS[lib])}
    assert behind == set()


def test_files_of_instants_have_one_door(trees: dict[str, ast.Module]) -> None:
    """What puts a completed file elsewhere makes an instant visible behind the followers' back."""
    found = {
        (name, line)
        for name, tree in trees.items()
        if name not in PUT_INSTANTS
        for line in puts_of_instants(tree)
    }
    assert found == set()


def puts_of_instants(tree: ast.Module) -> Iterator[int]:
    """Lines that put a file whose path is that of an instant, as the function around them says."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        paths = {"instant_path"}
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.NamedExpr, ast.For)):
                value = node.iter if isinstance(node, ast.For) else node.value
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if names_in(value) & paths:
                    paths |= names_in(target)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and PUTS & {*list(names_in(node.func)), last(node.func)}:
                given = [*node.args, *(word.value for word in node.keywords)]
                if any(names_in(one) & paths for one in given):
                    yield node.lineno


def names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def last(function: ast.AST) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ""


@pytest.mark.parametrize(
    "second",
    [
        "storage.put_if_absent(instant_path(completed), body)",
        "path = instant_path(completed)\n    put_decisively(storage, path, body)",
        "for path in map(instant_path, steps):\n        self.storage.replace(path, body)",
        "with storage.open_output(path=instant_path(instant)) as file:\n        file.write(body)",
    ],
)
def test_a_second_door_is_found(second: str) -> None:
    assert list(puts_of_instants(ast.parse(f"def finish():\n    {second}")))


def test_no_module_is_called_after_nothing() -> None:
    assert NO_NAMES & {module.stem for module in MODULES} == set()


def test_time_chance_and_environment_are_passed_in(trees: dict[str, ast.Module]) -> None:
    used = {
        (name, ast.unparse(node))
        for name, tree in trees.items()
        if name not in MAY_HAVE_HIDDEN_INPUT
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
    }
    assert {(name, hidden) for name, hidden in used if hidden in HIDDEN_INPUT} == set()


def test_no_root_of_pythons_errors_is_raised_or_swallowed(trees: dict[str, ast.Module]) -> None:
    found = [(name, line) for name, tree in trees.items() for line in roots_in(tree)]
    assert found == []


def roots_in(tree: ast.Module) -> Iterator[int]:
    """Lines at which a root of Python's errors is raised, or swallowed."""
    roots = {"Exception", "BaseException", "RuntimeError"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = {n.id for n in ast.walk(node.type or ast.Name("Exception"))
                      if isinstance(n, ast.Name)}  # fmt: skip
            passed_on = any(isinstance(n, ast.Raise) and n.exc is None for n in node.body)
            if caught & roots and not passed_on:
                yield node.lineno
        elif (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and ast.unparse(node.exc.func) in roots
        ):
            yield node.lineno


def test_public_functions_and_classes_have_docstrings(trees: dict[str, ast.Module]) -> None:
    kinds = (ast.FunctionDef, ast.ClassDef)
    public = [
        (name, node.name, ast.get_docstring(node))
        for name, tree in trees.items()
        for node in tree.body
        if isinstance(node, kinds) and node.name[0] != "_"
    ]
    assert [(name, what) for name, what, text in public if not text] == []


def test_unit_tests_mirror_the_package() -> None:
    """Those of several modules together are in `tests/integration`."""
    unit = Path(__file__).with_name("unit")
    tested = {t.relative_to(unit): t.stem.removeprefix("test_") for t in unit.rglob("test_*.py")}
    modules = {module.relative_to(PACKAGE).with_suffix("") for module in MODULES}
    assert {
        str(test) for test, name in tested.items() if test.with_name(name) not in modules
    } == set()

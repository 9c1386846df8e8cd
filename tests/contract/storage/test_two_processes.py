"""Two processes put the same names at the same time; each name has exactly one winner."""

import subprocess
import sys
from pathlib import Path

from hoodie_ds.storage.connect import open_storage

_ROUNDS = 150

# Puts its letter under the name that each line of input gives, and says how that went.
_CONTENDER = """
import sys
from hoodie_ds.errors import AlreadyExistsError
from hoodie_ds.storage.connect import open_storage

root, letter = sys.argv[1:]
storage = open_storage(root)
for line in sys.stdin:
    path = line.strip()
    try:
        storage.put_if_absent(path, letter.encode() * 50_000)
        print("won", letter, 50_000, flush=True)
    except AlreadyExistsError:
        content = storage.read(path).decode()
        print("lost", content[:1], len(content), flush=True)
"""


def _contender(root: str, letter: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _CONTENDER, root, letter]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def test_each_name_has_one_winner_and_the_loser_reads_its_whole_content(tmp_path: Path) -> None:
    winners = set()
    with _contender(str(tmp_path), "a") as a, _contender(str(tmp_path), "b") as b:
        for turn in range(_ROUNDS):
            for process in (a, b):
                assert process.stdin is not None
                process.stdin.write(f"new{turn}/f\n")
                process.stdin.flush()
            answers = []
            for process in (a, b):
                assert process.stdout is not None
                answers.append(process.stdout.readline().split())
            assert sorted(answer[0] for answer in answers) == ["lost", "won"]
            winner = next(answer[1] for answer in answers if answer[0] == "won")
            assert answers[0][1:] == answers[1][1:] == [winner, "50000"]
            winners.add(winner)
    storage = open_storage(str(tmp_path))
    assert len(storage.list("", recursive=True)) == _ROUNDS
    assert not list(tmp_path.rglob("*.tmp"))

"""Contenders put the same names at the same time; each name has exactly one winner."""

import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from hoodie_ds.errors import AlreadyExistsError
from hoodie_ds.storage.connect import open_storage
from tests.store_server import StoreServer
from tests.tally import tally

_ROUNDS = 500
_SIZE = 50_000

# Puts its letter under the name that each line of input gives, and says how that went.
_CONTENDER = """
import json
import sys
import time
from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.storage.connect import open_storage

root, letter, size = sys.argv[1:4]
storage = open_storage(root, json.loads(sys.stdin.readline()))

def read(path):
    # versitygw says that a name is taken a moment before it shows what is there.
    for _ in range(100):
        try:
            return storage.read(path)
        except NotFoundError:
            time.sleep(0.05)
    return b"nothing"

for line in sys.stdin:
    path = line.strip()
    try:
        storage.put_if_absent(path, letter.encode() * int(size))
        print("won", letter, size, flush=True)
    except AlreadyExistsError:
        content = read(path).decode()
        print("lost", content[:1], len(content), flush=True)
"""


def _contender(root: str, letter: str, options: dict[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _CONTENDER, root, letter, str(_SIZE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(options) + "\n")
    return process


def race(root: str, options: dict[str, str], rounds: int) -> Counter[tuple[int, bool]]:
    """Count rounds by (number of winners, whether both report the one winner's whole content)."""
    rounds_by_outcome: Counter[tuple[int, bool]] = Counter()
    with _contender(root, "a", options) as a, _contender(root, "b", options) as b:
        for turn in range(rounds):
            for process in (a, b):
                assert process.stdin is not None
                process.stdin.write(f"new{turn}/f\n")
                process.stdin.flush()
            answers = []
            for process in (a, b):
                assert process.stdout is not None
                answers.append(process.stdout.readline().split())
            winners = [answer[1] for answer in answers if answer[0] == "won"]
            whole = all(answer[1:] == [*winners[:1], str(_SIZE)] for answer in answers)
            rounds_by_outcome[len(winners), whole] += 1
    return rounds_by_outcome


SERVERS = ("s3", "versitygw", "gcs", "azurite", "hdfs")
PLACES = ["local", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)]


@pytest.mark.parametrize("place", PLACES)
def test_each_name_has_one_winner_and_the_loser_reads_its_whole_content(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    root, options = str(tmp_path), {}
    if place != "local":
        server: StoreServer = request.getfixturevalue(place)
        root, options = server.url(tmp_path), server.options
    rounds = _ROUNDS if place == "local" else _ROUNDS // 5  # a server takes longer
    outcomes = race(root, options, rounds)
    assert outcomes == {(1, True): rounds}
    tally(f"races, {place}", outcomes.total())
    assert len(open_storage(root, options).list("", recursive=True)) == rounds
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_server_without_conditions_lets_both_win(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The race can be lost: what it finds where the condition is ignored."""
    server = request.getfixturevalue("s3")
    outcomes = race(f"s3://lax{tmp_path}", server.options, 20)
    assert sum(outcomes[2, whole] for whole in (False, True)) == 20


def test_of_two_threads_on_the_memory_of_one_process_one_wins(tmp_path: Path) -> None:
    storage = open_storage(f"memory://{tmp_path}")
    start = threading.Barrier(2)
    won: list[tuple[int, bytes]] = []

    def contend(letter: bytes) -> None:
        for turn in range(_ROUNDS):
            start.wait()
            try:
                storage.put_if_absent(f"f{turn}", letter)
                won.append((turn, letter))
            except AlreadyExistsError:
                pass

    threads = [threading.Thread(target=contend, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(turn for turn, _ in won) == list(range(_ROUNDS))
    assert all(storage.read(f"f{turn}") == letter for turn, letter in won)

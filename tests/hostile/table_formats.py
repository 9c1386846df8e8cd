"""Files by which a table is known: properties, timeline, and what instants leave meanwhile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from random import Random

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, HoodieError, UnsupportedTableError
from hoodie_ds.sink.pinned_timeline import pin_timeline
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.table.hashing_config import load_hashing_config
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.bodies.replace_plan import empty_plan
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import LAYOUTS
from hoodie_ds.timeline.timeline import Timeline
from tests.hostile import seeds as s
from tests.hostile.format import must_name, read_any, read_table, write_on
from tests.hostile.mutations import (
    TEXTS,
    forged_json,
)
from tests.hostile.seeds import Seed
from tests.tables import VERSION


def properties(seed: Seed, data: bytes) -> None:
    write_on(seed, data)
    try:
        read_any(seed, data)
    except CorruptFileError:
        raise
    except HoodieError as error:
        # What a table is said to be, or to have, is an error of the table.
        must_name(error, "table", "hoodie.", "field")


def commit(seed: Seed, data: bytes) -> None:
    write_on(seed, data)
    (read_table if s.is_damaged(data) else read_any)(seed, data)


def forged_commit(rng: Random, data: bytes) -> bytes:
    forged = forged_json(rng, data)
    return s.with_digest(forged) if rng.random() < 0.8 else forged


def commits() -> list[Seed]:
    found = [seed for kind in ("cow", "mor", "bloom") for seed in s.ours(kind, "commit")]
    found = [seed for seed in [*found, *s.golden("commit")] if seed.path.endswith("commit")]
    return [seed for seed in found if seed.path.startswith(".hoodie/2")]


def commits_in_avro() -> list[Seed]:
    found = [seed for kind in ("cow9", "mor9") for seed in s.ours(kind, "/timeline/")]
    return [seed for seed in found if seed.path.endswith("commit")]


def commit_in_avro(seed: Seed, data: bytes) -> None:
    write_on(seed, data)
    (read_table if b"_hoodie_ds_digest" in data else read_any)(seed, data)


# Names on the timeline: the input is the name, the content goes with it.


_TIMES = (
    *("20251231235959999", "20260101000000000", "20991231235959999", "99991231235959999"),
    *("00000000000000000", "99999999999999999", "20260101000000", "٢٠٢٦٠١٠١٠٠٠٠٠٠٠٠٠"),
    *("20260101000000001", "2026010100000000", "202601010000000000", "-2026010100000000"),
)


def forged_name(rng: Random, seed: Seed, _: Sequence[bytes]) -> bytes:
    time = rng.choice(_TIMES)
    action = rng.choice((*(action.value for action in Action), "", "x", "COMMIT", "commit "))
    state = rng.choice(("", "", ".requested", ".inflight", ".completed", ".requested.inflight"))
    name = rng.choice((f"{time}.{action}{state}", f"{time}{state}", f"{time}_{time}.{action}"))
    content = rng.choice((b"", b"{}", b"[]", seed.data, empty_plan(), rng.randbytes(20)))
    return name.encode() + b"\0" + content


def names(seed: Seed, data: bytes) -> None:
    name, _, content = data.partition(b"\0")
    is_nine = seed.options.get(VERSION) == "9"
    path = f"{LAYOUTS[2 if is_nine else 1].folder}/{name.decode()}"
    forged = Seed(content, path, seed.files, seed.rows, True, seed.options)
    folder, time = path.rpartition("/")[0], re.split("[_.]", name.decode())[0]
    again = is_nine and any(other.startswith(f"{folder}/{time}") for other in seed.files)
    if path in seed.files or again:  # that is damage to an instant, which other formats are for
        return
    write_on(forged, content)
    try:
        read_table(forged, content)
    except HoodieError as error:
        must_name(error, name.decode())
        raise


# What lies in the temporary folder.


def forged_marker(rng: Random, seed: Seed, _: Sequence[bytes]) -> bytes:
    victims = [path for path in seed.files if "/.temp/" not in path]
    odd = (*TEXTS, "x", ".hoodie", "..", "../../x", ".hoodie/.temp")
    target = rng.choice((rng.choice(victims), rng.choice(("x", *victims)), rng.choice(odd)))
    kind = rng.choice(("CREATE", "MERGE", "APPEND", "", "x", "/"))
    marker = rng.choice((f"{target}.marker.{kind}", f"{target}.marker", str(target)))
    return marker.encode("utf-8", "surrogatepass")


def marker(seed: Seed, data: bytes) -> None:
    """Recovery deletes what markers announce: never a file that a commit names."""
    path = f"{seed.path}/{data.decode('utf-8', 'surrogatepass')}"
    storage = MemoryStorage(s.ROOT, {**seed.files, path: b""})
    table = HoodieTable(s.ROOT, seed.options, storage=storage)
    assert s.rows_of(table) == seed.rows
    try:
        table.upsert(s.MORE)
    finally:
        kept = {path for path in seed.files if path.startswith(("x/", ".hoodie/2", ".hoodie/h"))}
        gone = {path for path in kept - set(storage.files) if seed.path[-17:] not in path}
        assert not {path for path in gone if ".log." not in path}, gone


def pending_instant() -> list[Seed]:
    files = s.pending_files(committed=True)
    time = max(path for path in files if path.endswith(".inflight")).split("/")[1][:17]
    rows = s.rows_text("mor")
    return [Seed(b"", f".hoodie/.temp/{time}", files, rows, True, s.options_of("mor"))]


def temp_seeds(name: str) -> list[Seed]:
    files = s.pending_files()
    chosen = [path for path in files if name in path]
    options = {**s.options_of("mor"), **s.SPAN}
    rows = s.rows_text("mor")
    return [Seed(files[path], path, files, rows, True, options) for path in chosen]


def pending(seed: Seed, data: bytes) -> None:
    """The rows of an instant that is pending are not there, or all there once it was finished."""
    read_table(seed, data)
    table = seed.table(data)
    try:
        table.upsert(s.MORE)
        table.upsert(s.MORE, {"hoodie.streaming.batches.per.commit": "1"})
    except UnsupportedTableError:
        assert not s.is_damaged(data)  # the file groups that it names were forged too
        return
    ids = {row["id"] for row in table.read(["id"]).to_pylist()}
    assert ids >= {"k1", "n"}
    # Spark has moved past the batch that is in the manifest.
    assert "p" in ids or "manifest" in seed.path or not s.is_damaged(data)


# Small JSON files.


def hashing_configs() -> list[Seed]:
    return s.ours("rules", "hashing_config")


def hashing_config(seed: Seed, data: bytes) -> None:
    write_on(seed, data)
    load_hashing_config(MemoryStorage(s.ROOT, {**seed.files, seed.path: data}), Timeline())


@lru_cache
def views() -> list[Seed]:
    storage = MemoryStorage(s.ROOT, s.table_files("bloom"))
    pin_timeline(storage, BatchId("q", 3), lambda: load_timeline(storage, 1))
    (path,) = (path for path in storage.files if "/views/" in path)
    return [Seed(storage.files[path], path)]


def view(seed: Seed, data: bytes) -> None:
    storage = MemoryStorage(s.ROOT, {seed.path: data})
    pin_timeline(storage, BatchId("q", 3), Timeline)

"""The page of a table: its facts are those of the table, and nothing of the table is HTML in it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from tests.cli_runs import done, run
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

HOSTILE = "</script><img src=x onerror=document.title=1>"
NAME = "<img src=x onerror=document.title=1>"
"""No table's name has a slash."""


def facts(page: str) -> Any:
    """What the page holds, as a browser reads it."""
    found = re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found.group(1))


@pytest.mark.parametrize("version", ["6", "9"])
def test_the_facts_are_those_of_the_table(version: str, tmp_path: Path) -> None:
    given = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ", VERSION: version}
    table = HoodieTable(str(tmp_path / "t"), given)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 2.0)))
    table.delete(trips(("b", "x", 9, 9.0)).select(["id", "city"]))
    table.compact()
    table.savepoint()
    found = facts(table.inspect.report())
    commits, timeline = found["commits"], found["timeline"]
    assert commits["inserted"] == [3, 0, 0, 0]
    assert commits["total"] == [3, 3, 2, 2]
    assert commits["operations"][commits["operation"][0]] == "UPSERT"
    assert timeline["time"] == sorted(timeline["time"])
    assert len(timeline["time"]) == len(table.timeline.instants)
    assert found["verification"]["rows"] == table.read().num_rows == 2
    sizes = sorted(p.stat().st_size for p in (tmp_path / "t").rglob("*.parquet"))
    assert set(found["groups"]["base"]) <= set(sizes)
    assert sorted(row["partition"] for row in found["partitions"]) == ["x", "y"]
    done_ = {row["action"]: row["done"] for row in found["services"]}
    assert done_ == {"compaction": 1, "savepoint": 1}
    actions = sorted(timeline["actions"][at] for at in timeline["action"])
    assert actions == ["compaction", *["deltacommit"] * 3, "savepoint"]
    assert facts(table.inspect.report(verify=False))["verification"] is None


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_clustering_is_a_service_and_an_overwrite_a_write(version: str, tmp_path: Path) -> None:
    alone = {"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"}
    given = {**TRIPS, VERSION: version, **alone}
    del given[BUCKETS]
    table = HoodieTable(tmp_path / "t", given)
    table.overwrite(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 1, 1.0)))
    assert table.cluster({"hoodie.clustering.plan.strategy.small.file.limit": "1MB"})
    (service,) = facts(table.inspect.report())["services"]
    assert (service["action"], service["done"], service["pending"]) == ("clustering", 1, 0)


def test_damage_is_on_the_page(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path / "t"), TRIPS)
    table.upsert(trips(("a", "x", 1, 1.0)))
    (base,) = (tmp_path / "t").rglob("*.parquet")
    base.write_bytes(base.read_bytes()[:-9])
    (finding,) = facts(HoodieTable(str(tmp_path / "t")).inspect.report())["verification"][
        "findings"
    ]
    assert (finding["severity"], finding["kind"]) == ("damage", "wrong-size")


def test_no_text_of_the_table_gets_out_of_its_place(tmp_path: Path) -> None:
    clean = HoodieTable(str(tmp_path / "clean"), TRIPS)
    clean.upsert(trips(("a", "x", 1, 1.0)))
    encoded = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    table = HoodieTable(str(tmp_path / "t"), {**TRIPS, **encoded, "hoodie.table.name": NAME})
    table.upsert(trips((HOSTILE, HOSTILE, 1, 1.0)))
    page = table.inspect.report()
    assert facts(page)["overview"]["name"] == NAME
    assert page.lower().count("<script") == clean.inspect.report().lower().count("<script")
    assert "<img" not in page


def test_the_page_asks_nobody_for_anything(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path / "t"), TRIPS)
    table.upsert(trips(("a", "x", 1, 1.0)))
    page = table.inspect.report()
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|(src|href)=|@import|url\(", page.replace(str(tmp_path), ""))


def test_a_table_without_commits_has_a_page(tmp_path: Path) -> None:
    done("create", tmp_path / "t", "--columns", "id string, ts int64", "--key", "id")
    assert facts(HoodieTable(str(tmp_path / "t")).inspect.report())["commits"]["time"] == []


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path / "t"), TRIPS).upsert(trips(("a", "x", 1, 1.0)))
    page = tmp_path / "page.html"
    assert str(page) in done("report", tmp_path / "t", "-o", page).out
    assert facts(page.read_text())["verification"]["rows"] == 1
    refused = run("report", tmp_path / "t", "-o", tmp_path / "none" / "page.html", "--no-verify")
    assert refused.code == 2
    assert "cannot be written: No such file or directory; give another --output" in refused.err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [480, 1300])
def test_a_browser_shows_it(width: int, tmp_path: Path) -> None:
    given = {**TRIPS, "hoodie.table.name": NAME}
    table = HoodieTable(str(tmp_path / "t"), given)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    page = tmp_path / "page.html"
    page.write_text(table.inspect.report())
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},1500"]
    command = ["chromium", *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    shown = subprocess.run(
        [*command, page.as_uri()], check=True, capture_output=True, text=True, timeout=90
    ).stdout
    assert "data-ready=" in shown  # the script came to its end
    body = re.sub(r"<script.*?</script>", "", shown, flags=re.S)
    assert "every promise kept" in body
    assert "&lt;img src=x" in body
    assert "<img" not in body
    assert body.count("<canvas") == body.count('style="height: ') == 4

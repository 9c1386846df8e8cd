"""Moments that queries name."""

from __future__ import annotations

import pytest

from hoodie_ds.config.enums import IncrementalFormat
from hoodie_ds.config.query_instant import query_begin, query_instant
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import OptionError

READ = "hoodie.datasource.read."
INCREMENTAL = {"path": "/t", "hoodie.datasource.query.type": "incremental"}


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("20261122053054523", "20261122053054523"),
        ("20261122053054", "20261122053054"),
        ("2026-11-22 05:30:54.523", "20261122053054523"),
        ("2026-11-22 05:30:54", "20261122053054999"),
        ("2026-11-22", "20261122000000999"),
        ("20261122", None),
        ("2026-11-31", None),
        ("2026-11-22T05:30:54", None),
        ("earliest", None),
        ("", None),
    ],
)
def test_texts_mean_the_instants_that_hudi_takes_them_for(text: str, instant: str | None) -> None:
    assert query_instant(text) == instant


def test_a_range_may_begin_before_everything() -> None:
    assert (query_begin("000"), query_begin("earliest")) == ("000", "earliest")


def test_an_incremental_query_says_where_it_begins() -> None:
    with pytest.raises(OptionError, match="where the incremental query begins"):
        ReadOptions.parse(INCREMENTAL)
    asked = {**INCREMENTAL, f"{READ}begin.instanttime": "000"}
    found = ReadOptions.parse({**asked, "hoodie.datasource.query.incremental.format": "CDC"})
    assert found.incremental is not None
    assert (found.incremental.begin, found.incremental.end) == ("000", None)
    assert found.incremental.format is IncrementalFormat.CDC
    with pytest.raises(OptionError, match="says where an incremental query ends"):
        ReadOptions.parse({**asked, "versionAsOf": "20261122053054523"})


@pytest.mark.parametrize("key", [f"{READ}begin.instanttime", f"{READ}end.instanttime"])
def test_a_range_belongs_to_an_incremental_query(key: str) -> None:
    with pytest.raises(OptionError, match=r"query\.type=incremental") as caught:
        ReadOptions.parse({"path": "/t", key: "20261122053054523"})
    assert caught.value.key == key


def test_sparks_names_of_time_travel_are_hudis() -> None:
    for key in ("as.of.instant", "timestampAsOf", "versionAsOf", "timestampasof"):
        assert ReadOptions.parse({"path": "/t", key: "2026-11-22"}).as_of == "20261122000000999"

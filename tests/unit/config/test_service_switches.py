"""Which services come along with streams and batch writes: by Hudi's configuration reference."""

from __future__ import annotations

import pytest

from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions

COMPACTION = {Service.COMPACTION, Service.COMPACTION_PLAN}
ASYNC = "hoodie.datasource.compaction.async.enable"
SCHEDULE = "compaction.schedule.enabled"


def _services(is_stream: bool, **options: str) -> set[Service]:
    given = {key.replace("__", "."): value for key, value in options.items()}
    switches = WriteOptions.parse({"path": "/t", **given}).services
    return set(switches.of_batch(is_stream=is_stream))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, COMPACTION),
        ({ASYNC: "true"}, COMPACTION),
        ({"compaction.async.enabled": "true"}, COMPACTION),
        ({ASYNC: "false"}, set()),
        # Flink: to plan and leave the work to another job
        ({ASYNC: "false", SCHEDULE: "true"}, {Service.COMPACTION_PLAN}),
        ({ASYNC: "true", SCHEDULE: "false"}, {Service.COMPACTION}),
        ({ASYNC: "true", "hoodie.datasource.write.streaming.disable.compaction": "true"}, set()),
        ({ASYNC: "true", "hoodie.table.services.enabled": "false"}, set()),
    ],
)
def test_a_stream_compacts_unless_it_is_told_not_to(
    options: dict[str, str], expected: set[Service]
) -> None:
    assert _services(True, **options) & COMPACTION == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {Service.CLEAN, Service.ARCHIVE}),
        ({"hoodie.clean.automatic": "false"}, {Service.ARCHIVE}),
        ({"clean.async.enabled": "false"}, {Service.ARCHIVE}),
        ({"hoodie.archive.automatic": "false"}, {Service.CLEAN}),
        ({"hoodie.table.services.enabled": "false"}, set()),
    ],
)
def test_a_stream_cleans_unless_it_is_told_not_to(
    options: dict[str, str], expected: set[Service]
) -> None:
    assert _services(True, **options) - COMPACTION == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, set()),
        ({"hoodie.clean.automatic": "true"}, {Service.CLEAN}),
        ({"hoodie.archive.automatic": "true"}, {Service.ARCHIVE}),
        ({ASYNC: "true"}, set()),
        ({"hoodie.compact.inline": "true"}, COMPACTION),
        ({"hoodie.compact.schedule.inline": "true"}, {Service.COMPACTION_PLAN}),
        ({"hoodie.compact.inline": "true", "hoodie.table.services.enabled": "false"}, set()),
    ],
)
def test_a_batch_write_brings_along_what_it_is_asked_for(
    options: dict[str, str], expected: set[Service]
) -> None:
    assert _services(False, **options) == expected


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({}, set()),
        # said of the stream, whose options the job has
        ({"hoodie.datasource.write.streaming.disable.compaction": "true"}, set()),
        ({ASYNC: "false"}, {Service.COMPACTION}),
        ({"hoodie.clean.automatic": "false"}, {Service.CLEAN}),
        ({"hoodie.archive.automatic": "false"}, {Service.ARCHIVE}),
    ],
)
def test_a_job_does_what_is_not_switched_off(
    options: dict[str, str], missing: set[Service]
) -> None:
    wanted = WriteOptions.parse({"path": "/t", **options}).services.of_jobs
    assert {Service.COMPACTION, Service.CLEAN, Service.ARCHIVE} - wanted == missing

"""Which lock goes with which storage, and Hudi's limits of it."""

from __future__ import annotations

import pytest

from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import LockProvider
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError
from tests.tables import TRIPS

SHARED = {**TRIPS, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
PROVIDER = "hoodie.write.lock.provider"
VALIDITY = "hoodie.write.lock.storage.validity.timeout.secs"
RENEWAL = "hoodie.write.lock.storage.renew.interval.secs"
STORAGE = {**SHARED, PROVIDER: LockProvider.STORAGE.value}


@pytest.mark.parametrize(
    "path", ["s3://b/t", "s3a://b/t", "gs://b/t", "az://b/t", "abfss://c@a.dfs.core.windows.net/t"]
)
def test_hudis_lock_on_object_stores_is_the_one_for_several_engines_there(path: str) -> None:
    assert Concurrency.common_provider(path) is LockProvider.STORAGE
    for provider in (None, *LockProvider):
        given = {} if provider is None else {PROVIDER: provider.value}
        options = WriteOptions.parse({**SHARED, **given, "path": path})
        assert options.concurrency.is_common(path) is (provider is LockProvider.STORAGE)


@pytest.mark.parametrize("path", ["/t", "file:///t", "hdfs://n/t"])
def test_elsewhere_it_is_refused_as_in_hudi(path: str) -> None:
    assert Concurrency.common_provider(path) is LockProvider.FILE_SYSTEM
    with pytest.raises(OptionError, match="FileSystemBasedLockProvider") as refused:
        WriteOptions.parse({**STORAGE, "path": path})
    assert refused.value.key == PROVIDER
    WriteOptions.parse({**TRIPS, PROVIDER: LockProvider.STORAGE.value, "path": path})  # no lock
    by_file = {**SHARED, PROVIDER: LockProvider.FILE_SYSTEM.value, "path": path}
    assert WriteOptions.parse(by_file).concurrency.is_common(path)


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({}, True),
        ({VALIDITY: "299"}, False),  # ten times the default of renewals
        ({VALIDITY: "300"}, True),
        ({VALIDITY: "10", RENEWAL: "1"}, True),
        ({VALIDITY: "9", RENEWAL: "1"}, False),
        ({RENEWAL: "31"}, False),
        ({"hoodie.write.lock.storage.heartbeat.poll.secs": "31"}, False),
    ],
)
def test_the_limits_are_those_of_hudi(given: dict[str, str], allowed: bool) -> None:
    options = {**STORAGE, **given, "path": "s3://b/t"}
    if allowed:
        concurrency = WriteOptions.parse(options).concurrency
        assert concurrency.lease_ms == int(given.get(VALIDITY, "300")) * 1000
        assert concurrency.renew_ms == int(given.get(RENEWAL, "30")) * 1000
        return
    with pytest.raises(OptionError, match=r"at least \d+") as refused:
        WriteOptions.parse(options)
    assert refused.value.key == VALIDITY


@pytest.mark.parametrize(
    "provider",
    [
        "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        "org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider",
        "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
    ],
)
def test_other_providers_of_hudi_are_refused_with_what_to_set(provider: str) -> None:
    match = "StorageBasedLockProvider.*FileSystemBasedLockProvider.*let all writers set the first"
    with pytest.raises(OptionError, match=match) as refused:
        WriteOptions.parse({**SHARED, PROVIDER: provider, "path": "s3://b/t"})
    assert refused.value.key == PROVIDER

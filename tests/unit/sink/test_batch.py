"""What a batch takes from the table, and what from the options of the write."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from tests.tables import PARTITION, TRIPS, tree, trips

CUSTOM = {
    **TRIPS,
    PARTITION: "city:SIMPLE,ts:TIMESTAMP",
    "hoodie.datasource.write.keygenerator.type": "CUSTOM",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
}
ROWS = trips(("a", "x", 86_400_000, 1.0))


@pytest.fixture
def untyped(tmp_path: Path) -> Path:
    """A table as Hudi writes it: the types of its partition fields are recorded nowhere."""
    HoodieTable(str(tmp_path), CUSTOM).upsert(ROWS)
    path = tmp_path / ".hoodie/hoodie.properties"
    lines = path.read_text().splitlines()
    kept = [line for line in lines if ":SIMPLE" not in line.replace("\\:", ":")]
    assert len(kept) == len(lines) - 1
    path.write_text("\n".join(kept))
    return tmp_path


def test_types_of_partition_fields_come_from_the_option(untyped: Path) -> None:
    HoodieTable(str(untyped), CUSTOM).upsert(ROWS)
    paths = HoodieTable(str(untyped)).read()["_hoodie_partition_path"].to_pylist()
    assert paths == ["x/19700102"]


def test_without_types_a_custom_table_is_refused(untyped: Path) -> None:
    before = tree(untyped)
    with pytest.raises(OptionError, match="column:SIMPLE or column:TIMESTAMP"):
        HoodieTable(str(untyped)).upsert(ROWS)
    assert tree(untyped) == before


def test_a_batch_comes_back_from_a_task_that_has_merged_by_a_rule_of_ours(tmp_path: Path) -> None:
    """Mergers of partial updates hold functions that no pickle does."""
    options = {
        **TRIPS,
        "path": str(tmp_path),
        "hoodie.datasource.write.payload.class": (
            "org.apache.hudi.common.model.PartialUpdateAvroPayload"
        ),
    }
    batch = Coordinator.of(WriteOptions.parse(options)).begin(ROWS.schema)
    sent = pickle.dumps(batch)
    merger = batch.plan.merger
    assert pickle.dumps(batch) == sent
    back = pickle.loads(sent)
    assert isinstance(back, Batch)
    assert type(back.plan.merger) is type(merger)

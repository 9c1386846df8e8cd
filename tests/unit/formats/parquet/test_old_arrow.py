"""Files that only a newer pyarrow reads are not said to be damaged."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.formats.parquet import base_file_reader
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader

MAPS = pa.list_(pa.map_(pa.string(), pa.int32()))
DEEP = pa.map_(pa.string(), pa.struct([("x", pa.list_(MAPS))]))
PLAIN = pa.schema([("id", pa.string()), ("m", MAPS.value_type), ("l", pa.list_(pa.int32()))])
OF_17 = "MAP-annotated groups must have a single child."
OF_23 = "Group with one repeated child must be LIST-annotated."


def opened(
    monkeypatch: pytest.MonkeyPatch, version: str, said: str, schema: pa.Schema = PLAIN
) -> None:
    """Open a file as a release of pyarrow does, and with what it says."""

    def refusing(*_: object) -> None:
        raise pa.ArrowInvalid(said)

    monkeypatch.setattr(base_file_reader, "_open", refusing)
    monkeypatch.setattr(pa, "__version__", version)
    BaseFileReader(io.BytesIO(), schema, "p/f.parquet")


@pytest.mark.parametrize(("version", "said"), [("17.0.0", OF_17), ("23.0.1", OF_23)])
def test_the_release_and_the_columns_are_named(
    monkeypatch: pytest.MonkeyPatch, version: str, said: str
) -> None:
    schema = pa.schema([*PLAIN, ("am", MAPS), ("deep", DEEP)])
    told = rf"p/f\.parquet: pyarrow {version} .*column 'am', 'deep'\).*install pyarrow 24"
    with pytest.raises(UnsupportedTableError, match=told):
        opened(monkeypatch, version, said, schema)
    with pytest.raises(UnsupportedTableError, match="stores them; the file is whole"):
        opened(monkeypatch, version, said)


@pytest.mark.parametrize(("version", "said"), [("17.0.0", "no magic bytes"), ("24.0.0", OF_23)])
def test_other_errors_are_damage(monkeypatch: pytest.MonkeyPatch, version: str, said: str) -> None:
    with pytest.raises(CorruptFileError, match="is not a readable Parquet file"):
        opened(monkeypatch, version, said)

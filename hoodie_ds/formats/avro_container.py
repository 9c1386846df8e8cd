"""The name under which programs import `hoodie_ds.formats.avro.container` since release 0.1."""

from hoodie_ds.formats.avro.container import read_record, write_record

__all__ = ["read_record", "write_record"]

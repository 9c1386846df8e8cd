"""Avro: schemas, records and containers, to Arrow and back."""

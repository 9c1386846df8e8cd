"""A table's entries in catalogs: a Hive metastore, AWS Glue."""

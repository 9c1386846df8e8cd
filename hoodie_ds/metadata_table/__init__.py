"""Hudi's metadata table: files, statistics and keys of a table, as its writers recorded."""

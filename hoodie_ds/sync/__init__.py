"""Followers of a table, updated after its commits: a Delta log and entries in catalogs."""

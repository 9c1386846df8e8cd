"""Queries: which slices, rows and columns of a table."""

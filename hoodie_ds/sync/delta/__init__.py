"""The same table as Delta: a log beside it, over the same base files."""

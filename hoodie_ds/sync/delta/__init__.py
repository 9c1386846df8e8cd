"""The table as Delta: a log over the same base files."""

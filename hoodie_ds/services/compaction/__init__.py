"""Compaction of merge-on-read tables: log files are merged into new base files."""

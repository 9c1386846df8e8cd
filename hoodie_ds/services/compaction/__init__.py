"""Compaction of merge-on-read tables: merges log files into new base files."""

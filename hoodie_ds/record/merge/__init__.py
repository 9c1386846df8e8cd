"""Merge rules: the result of two records with the same key."""

"""Merge rules: what becomes of two records with the same key."""

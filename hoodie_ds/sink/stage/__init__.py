"""Rows that tasks stage for the commit, and their merging."""

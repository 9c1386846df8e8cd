"""Rows that tasks set aside for the commit, and the merging of them."""

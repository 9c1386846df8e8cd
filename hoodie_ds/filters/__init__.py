"""Filters of rows: one tree, whatever language a filter is written in."""

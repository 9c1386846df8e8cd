"""Upgrades and downgrades: a table becomes one of another version, its rows stay as they are."""

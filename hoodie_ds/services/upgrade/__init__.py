"""Upgrades and downgrades: change the version of a table; its rows stay as they are."""

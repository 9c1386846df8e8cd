"""A page about a table for a browser."""

"""A table as a page that a browser shows."""

"""Clustering: rewrites file groups together, sorted so that queries read fewer files."""

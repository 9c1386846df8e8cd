"""Clustering: file groups rewritten together, in an order by which rows are found sooner."""

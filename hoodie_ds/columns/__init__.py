"""Columns and rows as NumPy, Java and notebooks represent them, and Hudi's own columns."""

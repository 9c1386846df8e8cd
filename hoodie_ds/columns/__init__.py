"""Columns and rows as NumPy, Java and notebooks have them, and the columns of Hudi's own."""

"""Inspection of a table: what `HoodieTable.inspect` and the command ``hoodie-py`` show."""

"""Looking into a table: what `HoodieTable.inspect` and the command ``hoodie-py`` show."""

"""Base files: Parquet with the footers that Hudi's indexes read."""

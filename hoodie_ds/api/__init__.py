"""The table as users of this library meet it, without Spark."""

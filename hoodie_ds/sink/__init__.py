"""The streaming write path: coordinator, task writers, messages. No Spark in it."""

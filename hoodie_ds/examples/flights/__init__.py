"""A year of flights, streamed into a table and compared with the input: ``hoodie-flights``."""

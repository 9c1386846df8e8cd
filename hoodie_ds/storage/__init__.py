"""The only door to a file system: read, write, put-if-absent, list, delete."""

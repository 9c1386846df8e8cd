"""The only access to file systems: read, write, put-if-absent, list, delete."""

"""What others are told of a table after its commits: a Delta log, catalogs."""

"""Option descriptors, frozen option sets and table properties; the one option parser."""

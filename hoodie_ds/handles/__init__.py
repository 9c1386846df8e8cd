"""Writers of single files: create, merge, append."""

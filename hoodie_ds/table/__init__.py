"""A table opened: file names, file groups, the file-system view, the schema."""

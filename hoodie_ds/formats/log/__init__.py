"""Log files: the container of blocks, data blocks and delete blocks."""

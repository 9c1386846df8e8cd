"""What a task does with its rows: buffers, and writers of file groups."""

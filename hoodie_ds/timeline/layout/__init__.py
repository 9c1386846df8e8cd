"""Timeline layouts: where the files of instants lie, and what they are called."""

"""What a filter rules out before it is opened, or read."""

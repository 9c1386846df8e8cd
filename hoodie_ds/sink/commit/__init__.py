"""The commit of a batch: checks for conflicts, merges what is staged, completes the instant."""

"""What a row is: keys, partition paths, ordering, merging. Pure Arrow, no I/O."""

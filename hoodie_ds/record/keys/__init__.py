"""From rows to record keys and partition paths, as Hudi's key generators make them."""

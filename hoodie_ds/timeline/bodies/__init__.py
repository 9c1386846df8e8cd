"""What the files of instants hold: commits, plans, rollbacks, as Hudi writes them."""

"""Table services: what keeps a table fast and small, as actions on its timeline."""

"""The transaction protocol: opening, deciding, completing and undoing instants."""

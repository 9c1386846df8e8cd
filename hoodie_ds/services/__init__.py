"""What keeps a table healthy: rollback and recovery."""

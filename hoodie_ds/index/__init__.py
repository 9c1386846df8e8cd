"""Which file group a record key belongs to."""

"""File slices to rows."""

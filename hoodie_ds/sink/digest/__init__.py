"""Digests of rows, by which a micro-batch that comes again is compared with the first."""

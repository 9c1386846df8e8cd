"""Digests of rows, to compare a repeated micro-batch with the first one."""

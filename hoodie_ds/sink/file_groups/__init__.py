"""Rows into file groups: what tasks and, for staged rows, the commit write with."""

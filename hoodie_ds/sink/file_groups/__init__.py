"""Rows into file groups: the writers of tasks and, for staged rows, of the commit."""

"""The command ``hoodie-py``, which inspects and changes a table.

Modules import no more than click until a command runs, so that help and completion are fast.
"""

"""The command ``hoodie-py``: looking into a table and mending it, in Hudi's own terms.

Modules import no more than click until a command runs, so that help and completion come at once.
"""

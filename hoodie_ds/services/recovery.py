"""Placeholder."""
from hoodie_ds.timeline.timeline import load_timeline
def recover(table, clock):
    """Load only, for now."""
    return load_timeline(table.storage)

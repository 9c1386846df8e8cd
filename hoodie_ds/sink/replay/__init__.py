"""Repeated micro-batches: how they are recognised, and what their rows were."""

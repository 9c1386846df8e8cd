"""Micro-batches that come again: how they are known, and what their rows were."""

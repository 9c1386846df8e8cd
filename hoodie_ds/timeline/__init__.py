"""Instants and their life on storage."""

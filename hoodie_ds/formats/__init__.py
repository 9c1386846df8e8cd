"""Bytes of Hudi's files to Arrow and back; no file system access."""

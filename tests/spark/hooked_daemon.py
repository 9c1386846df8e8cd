"""Spark's daemon of Python workers, all of which have the hooks of `fail_points`.

Workers of streams load them with the data source, and those of merges would load no such module.
"""

from __future__ import annotations

from pyspark import daemon

from tests.spark import fail_points  # noqa: F401  which puts them in place

if __name__ == "__main__":
    daemon.manager()

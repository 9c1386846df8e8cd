"""The console commands; each prints one line and ends if a package that it needs is missing."""

from __future__ import annotations

import sys

from hoodie_ds.errors import MissingPackageError
from hoodie_ds.extras import remedy, require


def streamer() -> None:
    """Run ``hoodie-streamer``."""
    _require("hoodie-streamer", "spark,cli", "pyspark", "click", "rich")
    from hoodie_ds.streamer.job import main

    main()


def table() -> None:
    """Run ``hoodie-py``; unexpected errors also print one line."""
    _require("hoodie-py", "cli", "click", "rich")
    from hoodie_ds.cli.main import main

    sys.excepthook = _one_line
    main(prog_name="hoodie-py")


def _one_line(kind: type[BaseException], error: BaseException, _: object) -> None:
    print(  # noqa: T201
        f"Error: {kind.__name__}: {' '.join(str(error).split())}; this is a bug of hoodie-py, "
        "please report it",
        file=sys.stderr,
    )


def _require(command: str, extras: str, *packages: str) -> None:
    try:
        require(command, remedy(extras), *packages)
    except MissingPackageError as error:
        sys.exit(f"Error: {error}")

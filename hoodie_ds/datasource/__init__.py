"""The only door to Spark: thin adapters around the sink and the reader."""

from __future__ import annotations

from hoodie_ds.errors import MissingPackageError
from hoodie_ds.extras import remedy, require

require("the data source hoodie_py", remedy("spark"), "pyspark")

import pyspark  # noqa: E402 - only now is it known to be there

if tuple(int(number) for number in pyspark.__version__.split(".")[:2]) < (4, 1):
    raise MissingPackageError(
        "the data source hoodie_py needs PySpark 4.1 or newer, and this is "
        f"{pyspark.__version__}: {remedy('spark')}"
    )

"""How the rows of a table without record keys are distributed over tasks, and so over files.

No rows need to be together there, so they stay where they are unless an option says otherwise.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from hoodie_ds.config.enums import SortMode
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError


def distribute(
    df: DataFrame, properties: TableProperties, options: WriteOptions, num_tasks: int
) -> DataFrame:
    """Scatter and sort rows as the options say; refuse to sort a stream, or without columns.

    Rows of a partition are scattered over that many tasks by their content, so a recomputed task
    gets the same rows (the hot spot scattering of AnalyticDB's writer). The number of tasks is
    given to Spark, which would otherwise coalesce small ones.
    """
    partition = [sf.col(field) for field in properties.partition_fields]
    if options.tasks_per_partition is not None and partition:
        salt = sf.pmod(sf.xxhash64(*df.columns), sf.lit(options.tasks_per_partition))
        df = df.repartition(num_tasks, *partition, salt)
    order = [*partition, *(sf.col(name) for name in options.sort_columns or ())]
    if options.sort_mode is not SortMode.NONE and not order:
        raise OptionError(
            OperationOptions.sort_columns.key,
            None,
            "the table has no partitions; name the columns to sort by",
        )
    match options.sort_mode:
        case SortMode.GLOBAL_SORT | SortMode.PARTITION_SORT if df.isStreaming:
            raise OptionError(
                OperationOptions.sort_mode.key,
                options.sort_mode.value,
                "Spark does not sort streams; leave it out",
            )
        case SortMode.GLOBAL_SORT:
            return df.repartitionByRange(num_tasks, *order).sortWithinPartitions(*order)
        case SortMode.PARTITION_SORT:
            return df.sortWithinPartitions(*order)
    return df

"""The hidden column by which `shuffle_by_file_group` tells the sink what it did."""

from __future__ import annotations

from typing import Final

TASK_COLUMN: Final = "_hoodie_ds_task"
"""Integer: the task to which the shuffle sent the row; never stored."""

"""Timeline layouts: folders and names of the files of instants."""

from __future__ import annotations

from typing import Final

from hoodie_ds.timeline.layout.layout import Layout
from hoodie_ds.timeline.layout.v1 import V1
from hoodie_ds.timeline.layout.v2 import V2

LAYOUTS: Final[dict[int, Layout]] = {layout.version: layout for layout in (V1, V2)}
"""The layouts that are known here, by ``hoodie.timeline.layout.version``."""

"""Selection of files by their paths.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.schema.file_key_frames import canonical_path
from sparkdelta.base.skipping.data_skipping_frames import StoredFacts

_PATH = "__sparkdelta_path"


@dataclass(frozen=True, slots=True)
class PathFilter:
    """A substitute for a `DataSkipping` that keeps the files with some paths.

    Attributes
    ----------
    paths
        path STRING, as in any action of the log; may be null.
    is_broadcast
        True if they are surely few enough to be sent to every executor.
    """

    paths: DataFrame
    table_root: str
    is_broadcast: bool

    def keep(self, adds: DataFrame, _stored: StoredFacts) -> DataFrame:
        """Return the add actions of these files."""
        path = F.expr(canonical_path("path", table_root=self.table_root)).alias(_PATH)
        chosen = self.paths.select(path)
        if self.is_broadcast:
            chosen = F.broadcast(chosen)
        return adds.select("*", path).join(chosen, _PATH, "left_semi").drop(_PATH)

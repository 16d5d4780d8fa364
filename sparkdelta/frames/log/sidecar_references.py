"""Which sidecar files the checkpoints of a log name.

References
----------
PROTOCOL.md#sidecar-file-information, PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from sparkdelta.frames.log.file_keys import decoded_path

# They always reside in the log's own directory, so only the name counts.
_NAME = f"substring_index({decoded_path('path')}, '/', -1) AS name"


def unreferenced(stored: DataFrame, sidecars: DataFrame) -> DataFrame:
    """name STRING of the stored files that no checkpoint names.

    Parameters
    ----------
    stored
        name STRING of files in the directory of sidecars.
    sidecars
        path STRING of `sidecar` actions.
    """
    named = sidecars.selectExpr(_NAME)
    return stored.select("name").join(named, "name", "left_anti")

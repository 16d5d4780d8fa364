"""References from checkpoints to sidecar files.

References
----------
PROTOCOL.md#sidecar-file-information, PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from sparkdelta.base.schema.file_key_frames import decoded_path

# Sidecars are always in the log's `_sidecars` directory, so the file name identifies them.
_NAME = f"substring_index({decoded_path('path')}, '/', -1) AS name"


def unreferenced(stored: DataFrame, sidecars: DataFrame) -> DataFrame:
    """Return the stored sidecar files (name STRING) that no checkpoint references.

    Parameters
    ----------
    stored
        name STRING: the files in the `_sidecars` directory.
    sidecars
        path STRING: the paths of `sidecar` actions.
    """
    named = sidecars.selectExpr(_NAME)
    return stored.select("name").join(named, "name", "left_anti")

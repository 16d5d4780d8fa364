"""Results of data skipping as columns, for reports.

References
----------
PROTOCOL.md#per-file-statistics, PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping, StoredFacts
from sparkdelta.base.skipping.skipping_frames import Condition

KEPT_BY_PARTITION_VALUES = "keptByPartitionValues"
KEPT_BY_STATISTICS = "keptByStatistics"


@dataclass(frozen=True, slots=True)
class FileMarks:
    """A substitute for a `DataSkipping` that marks files instead of skipping them."""

    skipping: DataSkipping

    def keep(self, adds: DataFrame, stored: StoredFacts = NOTHING_STORED) -> DataFrame:
        """Return the add actions with two BOOLEAN columns for the results of data skipping.

        KEPT_BY_PARTITION_VALUES is true if partition values do not exclude the file;
        KEPT_BY_STATISTICS is true if its statistics do not exclude it either.
        """
        by_partition = _holds(self.skipping.by_partition(stored))
        by_statistics = _holds(self.skipping.by_statistics(stored))
        return adds.withColumns(
            {
                KEPT_BY_PARTITION_VALUES: by_partition,
                # JSON statistics are parsed only for the remaining files.
                KEPT_BY_STATISTICS: F.when(by_partition, by_statistics).otherwise(F.lit(False)),
            }
        )


def _holds(condition: Condition) -> Column:
    return F.lit(True) if condition is None else F.expr(f"coalesce({condition}, FALSE)")

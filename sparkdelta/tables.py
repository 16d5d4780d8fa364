"""`DeltaTable` and its builders under the names of delta-spark's module `delta.tables`."""

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.merge_builder import DeltaMergeBuilder
from sparkdelta.api.optimize_builder import DeltaOptimizeBuilder
from sparkdelta.api.table_builder import DeltaTableBuilder, IdentityGenerator

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]

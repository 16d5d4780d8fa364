"""Delta Lake on Spark without a JAR: the transaction log protocol as DataFrame transformations."""

from sparkdelta.exceptions import DeltaError
from sparkdelta.io import load_snapshot, read_delta, write_delta
from sparkdelta.table.scan import Scan
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.tables import DeltaTable

__all__ = [
    "DeltaError",
    "DeltaTable",
    "Scan",
    "Snapshot",
    "load_snapshot",
    "read_delta",
    "write_delta",
]

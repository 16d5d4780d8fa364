"""Delta Lake on Spark without a JAR: the transaction log protocol as DataFrame transformations."""

from sparkdelta.api.alter import AlterTable, alter_table
from sparkdelta.api.catalogs import Catalog, RatifiedCommits, StagedCommit, use_catalog
from sparkdelta.api.cloning import clone, convert_to_delta
from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.reading_and_writing import load_snapshot, read_changes, read_delta, write_delta
from sparkdelta.api.streams import read_stream, write_stream
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.checkpoint.checkpoint_writing import write_checkpoint
from sparkdelta.operations.optimize.optimize import optimize, reorg
from sparkdelta.operations.upkeep.checksum_writing import write_version_checksum
from sparkdelta.operations.upkeep.log_compaction import compact_log
from sparkdelta.operations.upkeep.metadata_cleanup import clean_log
from sparkdelta.operations.vacuum.vacuum import vacuum
from sparkdelta.operations.verify.recompute_statistics import recompute_statistics
from sparkdelta.operations.verify.repair import repair
from sparkdelta.operations.verify.verification import verify
from sparkdelta.sql.sessions import configure, disable, enable, sql
from sparkdelta.table.scan.scan import Scan
from sparkdelta.table.snapshot.snapshot import Snapshot

__version__ = "0.1.0"

__all__ = [
    "AlterTable",
    "Catalog",
    "DeltaError",
    "DeltaTable",
    "RatifiedCommits",
    "Scan",
    "Snapshot",
    "StagedCommit",
    "alter_table",
    "clean_log",
    "clone",
    "compact_log",
    "configure",
    "convert_to_delta",
    "disable",
    "enable",
    "load_snapshot",
    "optimize",
    "read_changes",
    "read_delta",
    "read_stream",
    "recompute_statistics",
    "reorg",
    "repair",
    "sql",
    "use_catalog",
    "vacuum",
    "verify",
    "write_checkpoint",
    "write_delta",
    "write_stream",
    "write_version_checksum",
]

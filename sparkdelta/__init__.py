"""Delta Lake on Spark without a JAR: the transaction log protocol as DataFrame transformations.

A name is imported when it is first used, so that a program waits only for the modules that it
needs.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparkdelta.api.alter import AlterTable, alter_table
    from sparkdelta.api.catalogs import Catalog, RatifiedCommits, StagedCommit, use_catalog
    from sparkdelta.api.cloning import clone, convert_to_delta
    from sparkdelta.api.delta_table import DeltaTable
    from sparkdelta.api.reading_and_writing import (
        load_snapshot,
        read_changes,
        read_delta,
        write_delta,
    )
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

_SUBMODULES = ("exceptions", "tables")
_MODULES = {
    "api.alter": ("AlterTable", "alter_table"),
    "api.catalogs": ("Catalog", "RatifiedCommits", "StagedCommit", "use_catalog"),
    "api.cloning": ("clone", "convert_to_delta"),
    "api.delta_table": ("DeltaTable",),
    "api.reading_and_writing": ("load_snapshot", "read_changes", "read_delta", "write_delta"),
    "api.streams": ("read_stream", "write_stream"),
    "exceptions": ("DeltaError",),
    "operations.checkpoint.checkpoint_writing": ("write_checkpoint",),
    "operations.optimize.optimize": ("optimize", "reorg"),
    "operations.upkeep.checksum_writing": ("write_version_checksum",),
    "operations.upkeep.log_compaction": ("compact_log",),
    "operations.upkeep.metadata_cleanup": ("clean_log",),
    "operations.vacuum.vacuum": ("vacuum",),
    "operations.verify.recompute_statistics": ("recompute_statistics",),
    "operations.verify.repair": ("repair",),
    "operations.verify.verification": ("verify",),
    "sql.sessions": ("configure", "disable", "enable", "sql"),
    "table.scan.scan": ("Scan",),
    "table.snapshot.snapshot": ("Snapshot",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:  # else every name would be one of this package

    def __getattr__(name: str) -> object:
        if name in _SUBMODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        setattr(sys.modules[__name__], name, value)
        return value


def __dir__() -> list[str]:
    return [*__all__, *_SUBMODULES, "__version__"]


class _Package(ModuleType):
    """This package, whose attribute `sql` is the function; there is a room of the same name, too,
    which Python would set as an attribute when it is imported.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name != "sql" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

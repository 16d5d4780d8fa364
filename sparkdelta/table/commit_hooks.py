"""What follows a commit: its version checksum, and as the properties say a log compaction, a
checkpoint and a cleanup of the log.

Nothing of it is part of the commit, and nothing that fails in it takes the commit back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.table_features import Writing
from sparkdelta.protocol.table_properties import (
    checkpoint_interval,
    compaction_interval,
    is_off,
)
from sparkdelta.protocol.version_checksum import VersionChecksum
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.checkpoint_options import CheckpointOptions
from sparkdelta.table.checkpointer import write_checkpoint
from sparkdelta.table.checksum_chain import add_checksum_of_commit
from sparkdelta.table.job_names import jobs_of
from sparkdelta.table.log_compaction import compact
from sparkdelta.table.metadata_cleanup import ENABLED, clean_metadata
from sparkdelta.table.sessions import writing_session
from sparkdelta.table.version_checksum import add_version_checksum
from sparkdelta.table.writable import open_writable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitHooks:
    """What is to be done after one commit.

    Attributes
    ----------
    spark
        None where the table has just been made of values alone.
    properties
        Of the table after the commit.
    lines
        The commit, if it is small; else Spark looks at it.
    checksum_before
        Of the version before, if it is known.
    """

    spark: SparkSession | None
    store: LogStore
    version: Version
    properties: Mapping[str, str]
    lines: bytes | None
    checksum_before: VersionChecksum | None = None

    def run(self) -> None:
        """Do it; what fails is logged, and the rest goes on.

        References
        ----------
        PROTOCOL.md#version-checksum-file, PROTOCOL.md#checkpoints, PROTOCOL.md#metadata-cleanup
        """
        steps = {
            "version checksum": self._checksum,
            "log compaction": self._compaction,
            "checkpoint": self._checkpoint,
        }
        for what, step in steps.items():
            try:
                with jobs_of(self.store.table_root, self.version):
                    step()
            except BaseException as error:
                log.warning(
                    "Version %s of %s was committed, but its %s failed: %s",
                    self.version, self.store.table_root, what, error,
                )  # fmt: skip
                if not isinstance(error, Exception):
                    raise

    def _checksum(self) -> None:
        if self.lines is not None:
            add_checksum_of_commit(self.store, self.version, self.lines, self.checksum_before)
        elif self.spark is not None:
            snapshot = open_writable(self.spark, self.store.table_root, version=self.version)
            add_version_checksum(snapshot, from_state=False)

    def _compaction(self) -> None:
        interval = compaction_interval(self.properties)
        if interval is None or interval < 2 or (self.version + 1) % interval or self.spark is None:
            return
        with writing_session(self.spark) as session:
            snapshot = open_writable(session, self.store.table_root, version=self.version)
            compact(snapshot, self.version - interval + 1, self.version)

    def _checkpoint(self) -> None:
        if not self.version or self.version % checkpoint_interval(self.properties):
            return
        assert self.spark is not None
        path, now = self.store.table_root, time.time_ns() // 1_000_000
        with writing_session(self.spark) as session:
            write_checkpoint(session, path, CheckpointOptions(), version=self.version, now_ms=now)
            # Where no commit told the checksum; the state is at hand now.
            add_version_checksum(open_writable(session, path, version=self.version))
        if not is_off(self.properties, ENABLED):
            clean_metadata(open_writable(self.spark, path, writing=Writing.CLEANUP), now_ms=now)

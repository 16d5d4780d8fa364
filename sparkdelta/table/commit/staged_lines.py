"""The lines of file actions that are too many to be values, in files written by executors.

References
----------
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

from pyspark.sql import DataFrame

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.spark.driver import read_row, read_rows
from sparkdelta.base.spark.local_data import rows_frame
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.commit.row_id_frames import (
    FIRST_ROW_IDS,
    GROUP,
    GROUPS,
    new_row_totals,
    with_row_ids,
)
from sparkdelta.table.log.commit_line_frames import action_totals, file_action_lines
from sparkdelta.table.snapshot.staging import Staging

LINES_PER_FILE = 20_000
"""The number of lines in a file; the driver holds one file at a time, some ten MB."""


@dataclass(frozen=True, slots=True)
class DistinctAdds:
    """The number of adds with `dataChange`, each of another file, and whether any has a vector."""

    count: int
    have_vectors: bool


@dataclass(frozen=True, slots=True)
class StagedLines:
    """Lines of a commit in a staging directory.

    Collected actions could fill a small driver's heap: Spark drops task results that do not fit,
    and fails with `TaskResultLost`.
    """

    adds_data: bool
    removes_data: bool
    has_vectors: bool
    has_change_files: bool
    num_removes: int
    removed_bytes: int
    _stage: Staging
    _actions: DataFrame = field(repr=False)
    _files: tuple[str, ...] = ()
    _new_rows: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, actions: DataFrame, stage: Staging) -> StagedLines:
        """Write the lines of actions, see `table.log.commit_line_frames.conformed_actions`."""
        return cls._known(actions, stage)._written(actions, "lines")

    @classmethod
    def of_adds(cls, actions: DataFrame, stage: Staging, adds: DistinctAdds) -> StagedLines:
        """Write the lines of actions that are all adds; the actions are computed once."""
        known = cls(
            adds_data=True,
            removes_data=False,
            has_vectors=adds.have_vectors,
            has_change_files=False,
            num_removes=0,
            removed_bytes=0,
            _stage=stage,
            _actions=actions,
        )
        return known._written(actions, "lines")

    @classmethod
    def to_number(cls, actions: DataFrame, stage: Staging) -> StagedLines:
        """Return the lines of actions that need row ids, to be written by `with_row_ids`."""
        totals = read_rows(
            new_row_totals(actions), what="new row counts of a large commit", bound=GROUPS
        )
        uncounted = [row["uncounted"] for row in totals if row["uncounted"] is not None]
        if uncounted:
            problem = f"{uncounted[0]} has no numRecords, which row ids require"
            raise DeltaError.of(
                "DELTA_INVALID_COMMIT", path=stage.store.table_root, problem=problem
            )
        new_rows = {row[GROUP]: row["num_rows"] for row in totals}
        return replace(cls._known(actions, stage), _new_rows=new_rows)

    @property
    def num_new_rows(self) -> int:
        """The number of rows that need row ids."""
        return sum(self._new_rows.values())

    def with_row_ids(self, *, mark: int, version: Version) -> StagedLines:
        """Write the lines with fresh row ids above a high-water mark."""
        ends = accumulate(self._new_rows.values(), initial=mark + 1)
        first_row_ids = rows_frame(
            self._actions.sparkSession, list(zip(self._new_rows, ends, strict=False)), FIRST_ROW_IDS
        )
        numbered = with_row_ids(self._actions, first_row_ids, version=version)
        return self._written(numbered, f"lines-{version}")

    def chunks(self) -> Iterator[bytes]:
        """Yield the lines, one file at a time."""
        for name in self._files:
            yield self._stage.read(*name.split("/"))

    @classmethod
    def _known(cls, actions: DataFrame, stage: Staging) -> StagedLines:
        totals = read_row(action_totals(actions), what="totals of a large commit")
        return cls(**totals.asDict(), _stage=stage, _actions=actions)

    def _written(self, actions: DataFrame, part: str) -> StagedLines:
        options = {"maxRecordsPerFile": str(LINES_PER_FILE)}
        files = self._stage.write_lines(file_action_lines(actions), part, options)
        return replace(self, _files=tuple(f"{part}/{file.name}" for file in files))

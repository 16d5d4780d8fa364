"""File actions that are too many to be values, as lines in files that executors wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame

from sparkdelta.frames.commit_lines import action_totals, file_action_lines
from sparkdelta.table.driver import read_rows
from sparkdelta.table.staging import Staging

LINES_PER_FILE = 20_000
"""The driver holds the lines of one file at a time: some ten MB."""

_PART = "lines"


@dataclass(frozen=True, slots=True)
class StagedLines:
    """`FileLines` in a staging directory.

    Actions that came as results of tasks would fill a small driver's heap, a partition at a time:
    Spark drops what it has no room for, and reports `TaskResultLost`.
    """

    adds_data: bool
    removes_data: bool
    has_vectors: bool
    num_removes: int
    removed_bytes: int
    _stage: Staging
    _files: tuple[str, ...]

    @classmethod
    def of(cls, actions: DataFrame, stage: Staging) -> StagedLines:
        """Write the lines of actions as `frames.commit_lines.conformed_actions` gives them, and
        find out what must be known of them.
        """
        options = {"maxRecordsPerFile": str(LINES_PER_FILE)}
        files = stage.write_lines(file_action_lines(actions), _PART, options)
        totals = read_rows(action_totals(actions), what="what a large commit does", bound=1)
        names = tuple(file.name for file in files)
        return cls(**totals[0].asDict(), _stage=stage, _files=names)

    def chunks(self) -> Iterator[bytes]:
        """The lines in pieces, from the beginning."""
        for name in self._files:
            yield self._stage.read(_PART, name)

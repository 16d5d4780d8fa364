"""Conflict detection against winning commits that the driver reads as values, without Spark.

References
----------
PROTOCOL.md#delta-log-entries
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sparkdelta.base.protocol.commit_info import COMMIT_INFO
from sparkdelta.base.protocol.file_actions import AddFile, file_key
from sparkdelta.base.protocol.log_files import LogFile, Version
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import MalformedLogFileError
from sparkdelta.table.commit.committer import Comparison
from sparkdelta.table.commit.conflict_rules import (
    Conflict,
    ReadSet,
    WinningCommit,
    file_conflicts,
    table_conflicts,
)
from sparkdelta.table.commit.staged_commit_rules import StagedActions
from sparkdelta.table.commit.vector_rebase import VectorRebase

_OTHER_ACTIONS = ('"protocol"', '"metaData"', '"txn"', '"domainMetadata"', f'"{COMMIT_INFO}"')
_OF_ADDED_FILES = {Conflict.ADDED_WHERE_READ, Conflict.APPENDED_WHERE_READ}
_OF_REMOVED_FILES = {Conflict.REMOVED_WHAT_WAS_READ, Conflict.REMOVED_WHAT_IS_REMOVED}
_FILE_LINES = ('{"add":', '{"remove":', '{"cdc":')


@dataclass(frozen=True, slots=True)
class DriverConflictDetector:
    """A detector of conflicts of a transaction whose read set and removes are values.

    Attributes
    ----------
    partition_types
        See `base.predicates.partition_matching_rules.may_match`.
    may_match
        Returns the added files of a commit that may match the predicates of `read`, if more is to
        decide than partition values.
    rebase
        Unites deletion vectors with the vectors of a commit; None to let them conflict.
    """

    store: LogStore
    read: ReadSet = field(default_factory=ReadSet)
    partition_types: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    may_match: Callable[[WinningCommit], tuple[AddFile, ...]] | None = None
    rebase: VectorRebase | None = None

    def __call__(
        self, file: LogFile, staged: StagedActions, data: bytes | None = None
    ) -> Comparison:
        needs_files = self.read.depends_on_files or bool(staged.removes)
        if data is None:
            [data] = self.store.read([file.name])
        winner = parse_commit(
            data, file.version, with_files=needs_files, path=self.store.table_root
        )
        conflicts = self._conflicts(winner, staged, winner.adds)
        added = winner.adds if conflicts.keys() & _OF_ADDED_FILES else ()
        if added and self.may_match is not None and not self.read.whole_table:
            added = self.may_match(winner)
            conflicts = self._conflicts(winner, staged, added)
        if self.rebase is None or not conflicts.keys() & (_OF_ADDED_FILES | _OF_REMOVED_FILES):
            return Comparison(winner, conflicts, staged)
        rebased = self.rebase(staged, winner, added)
        conflicts = self._conflicts(winner, staged, rebased.new_files, rebased.paths)
        return Comparison(winner, conflicts, rebased.staged)

    def _conflicts(
        self,
        winner: WinningCommit,
        staged: StagedActions,
        added: tuple[AddFile, ...],
        rebased: frozenset[str] = frozenset(),
    ) -> dict[Conflict, str]:
        root = self.store.table_root
        removes = frozenset(file_key(remove, root) for remove in staged.removes)
        return {
            **table_conflicts(winner, app_ids=self.read.app_ids, domains=staged.domain_names),
            **file_conflicts(
                replace(winner, adds=added),
                read=self.read,
                removes=frozenset(key for key in removes if key[0] not in rebased),
                partition_types=self.partition_types,
                table_root=root,
            ),
        }


def parse_commit(data: bytes, version: Version, *, with_files: bool, path: str) -> WinningCommit:
    """Parse a commit file.

    Parameters
    ----------
    with_files
        False to skip the lines of file actions.
    """
    found: dict[str, list[Mapping[str, object]]] = {}
    try:
        for line in data.decode("utf-8").split("\n"):
            if not line.strip() or (not with_files and _is_file_line(line)):
                continue
            for name, document in json.loads(line).items():
                if document is not None:
                    found.setdefault(name, []).append(document)
        return WinningCommit.of(version, found, path=path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MalformedLogFileError(
            path=path, version=version, problem=f"it contains a line that is not an action: {error}"
        ) from error


def _is_file_line(line: str) -> bool:
    """Return True if a line certainly holds a file action and nothing else."""
    is_one = line.startswith(_FILE_LINES) and line.rstrip().endswith("}}")
    return is_one and not any(name in line for name in _OTHER_ACTIONS)

"""Deletion vectors of a transaction, with the rows that an earlier commit deleted.

References
----------
PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.protocol.file_paths import canonical_path
from sparkdelta.base.protocol.roaring_bitmaps import Chunks, cardinality, encode_chunks
from sparkdelta.base.storage.worker_files import StoredFiles
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.commit.conflict_rules import WinningCommit
from sparkdelta.table.commit.staged_commit_rules import StagedActions
from sparkdelta.table.vectors.deletion_vector_workers import read_deletion_vector
from sparkdelta.table.vectors.deletion_vector_writing_workers import write_vector_file
from sparkdelta.table.vectors.vector_change_rules import (
    VectorChange,
    deleted_by,
    following,
    has_rows_left,
    united_rows,
    vector_changes,
)

MAX_REBASED_FILES = 100
"""The most files whose vectors are united, as they are read one after the other. If there are more,
any change of a file that the transaction changes is a conflict."""


@dataclass(frozen=True, slots=True)
class Rebased:
    """A transaction after a winning commit.

    Attributes
    ----------
    staged
        Its actions.
    paths
        Canonical paths of the files whose deletion vectors were united.
    new_files
        The files added by the commit that may hold rows which were not there before.
    """

    staged: StagedActions
    paths: frozenset[str]
    new_files: tuple[AddFile, ...]


@dataclass(frozen=True, slots=True)
class VectorRebase:
    """The deletion vectors of a transaction, with the rows that winning commits deleted.

    Attributes
    ----------
    open_files
        Returns the table's files as the driver reaches them.
    """

    table_root: str
    open_files: Callable[[], StoredFiles]

    def __call__(
        self, staged: StagedActions, winner: WinningCommit, added: tuple[AddFile, ...]
    ) -> Rebased:
        """Return the transaction as it follows a commit; writes the united vectors.

        Parameters
        ----------
        added
            The files added by the commit that may match what the transaction read.

        Raises
        ------
        DeletionVectorError, DELTA_FILE_NOT_FOUND
            A deletion vector is damaged or missing.
        """
        mine = vector_changes(staged.adds, staged.removes, table_root=self.table_root)
        relevant = {self._key(add) for add in added} | mine.keys()
        changes = vector_changes(winner.adds, winner.removes, table_root=self.table_root)
        winners = {path: changes[path] for path in changes.keys() & relevant}
        if not winners or len(winners) > MAX_REBASED_FILES:
            return Rebased(staged, frozenset(), added)
        files = self.open_files()

        @cache
        def read(vector: DeletionVectorDescriptor) -> Chunks:
            try:
                return read_deletion_vector(vector, files=files, table_root=self.table_root)
            except FileNotFoundError as error:
                file = str(vector.absolute_path(self.table_root))
                raise DeltaError.of(
                    "DELTA_FILE_NOT_FOUND", file=file, version=winner.version
                ) from error

        found = {
            path: united_rows(mine[path], change, read)
            for path, change in winners.items()
            if path in mine
        }
        united = {path: rows for path, rows in found.items() if rows is not None}
        lost_rows_only = {
            path
            for path, change in winners.items()
            if path in united or deleted_by(change, read) is not None
        }
        return Rebased(
            self._following(staged, mine, winners, united, files),
            frozenset(united),
            tuple(add for add in added if self._key(add) not in lost_rows_only),
        )

    def _following(
        self,
        staged: StagedActions,
        mine: Mapping[str, VectorChange],
        winners: Mapping[str, VectorChange],
        united: Mapping[str, Chunks],
        files: StoredFiles,
    ) -> StagedActions:
        kept = {path: rows for path, rows in united.items() if has_rows_left(mine[path], rows)}
        bitmaps = [(encode_chunks(rows), cardinality(rows)) for rows in kept.values()]
        written = (
            write_vector_file(bitmaps, files, self.table_root, _directory(mine)) if bitmaps else []
        )
        vectors = dict(zip(kept, written, strict=True))
        actions = {path: following(mine[path], winners[path], vectors.get(path)) for path in united}
        removes = [actions.get(self._key(r), (r, None))[0] for r in staged.removes]
        adds = [actions.get(self._key(a), (None, a))[1] for a in staged.adds]
        return replace(
            staged, removes=tuple(removes), adds=tuple(add for add in adds if add is not None)
        )

    def _key(self, action: AddFile | RemoveFile) -> str:
        return canonical_path(action.path, self.table_root)


def _directory(mine: Mapping[str, VectorChange]) -> str:
    """Return the directory of the transaction's vectors; empty for the table's root."""
    vectors = (change.add.deletion_vector for change in mine.values())
    return next((vector.prefix for vector in vectors if vector is not None), "")

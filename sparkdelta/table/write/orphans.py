"""Data files that no version refers to, and how whoever looks for them learns of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sparkdelta.exceptions import CommitOutcomeUnknownError, StorageError

log = logging.getLogger(__name__)


@contextmanager
def orphans_are_told(
    table_root: str, directory: str, delete: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Tell, with an error that leaves the block, what is left behind: in the log, and as a note of
    the error where Python has notes.

    Parameters
    ----------
    directory
        Where new data files are that are about to be committed.
    delete
        Deletes the directory, so that nothing is left; only for a block that commits nothing.

    References
    ----------
    PROTOCOL.md#data-files
    """
    try:
        yield
    except BaseException as error:
        # Of a write that is interrupted, tasks may still run.
        if delete is not None and isinstance(error, Exception) and _is_gone(delete, directory):
            raise
        if isinstance(error, CommitOutcomeUnknownError):
            told = f"It is unknown whether the files in {directory} were committed to {table_root}."
        else:
            told = (
                f"Nothing was committed to {table_root}; unreferenced files may remain "
                f"in {directory}."
            )
        log.warning(told)
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(told)
        raise


def _is_gone(delete: Callable[[str], None], directory: str) -> bool:
    try:
        delete(directory)
    except (OSError, StorageError) as error:
        log.info("Cannot delete %s: %s", directory, error)
        return False
    return True

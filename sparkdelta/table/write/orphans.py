"""Reports of files at a table's root that no version refers to."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sparkdelta.exceptions import CommitOutcomeUnknownError, DeltaWarning, StorageError
from sparkdelta.storage.log_store import LogStore

log = logging.getLogger(__name__)


@contextmanager
def report_orphans(
    table_root: str, directory: str, delete: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Report the files that are left behind when an error leaves the block: in the log, and as a
    note of the error where Python has notes.

    Parameters
    ----------
    directory
        Holds the new data files.
    delete
        Deletes the directory, so that nothing is left; only for a block that commits nothing.

    References
    ----------
    PROTOCOL.md#data-files
    """
    try:
        yield
    except BaseException as error:
        # Tasks of an interrupted write may still run.
        if delete is not None and isinstance(error, Exception) and _is_deleted(delete, directory):
            raise
        if isinstance(error, CommitOutcomeUnknownError):
            text = f"It is unknown whether the files in {directory} were committed to {table_root}."
        else:
            text = (
                f"Nothing was committed to {table_root}; unreferenced files may remain "
                f"in {directory}."
            )
        log.warning(text)
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(text)
        raise


def _is_deleted(delete: Callable[[str], None], directory: str) -> bool:
    try:
        delete(directory)
    except (OSError, StorageError) as error:
        log.info("Cannot delete %s: %s", directory, error)
        return False
    return True


def warn_of_other_files(store: LogStore) -> None:
    """Warn if a new table is created among other files; the warning's place is the caller's code,
    outside this package.
    """
    if store.is_alone():
        return
    text = (
        f"Creating a new table at {store.table_root}, next to files that do not belong "
        "to it: the table contains only the new rows, and VACUUM may delete these "
        "files. Write to another path to keep them separate."
    )
    package, level = __name__.partition(".")[0], 1
    while str(sys._getframe(level).f_globals.get("__name__")).partition(".")[0] == package:
        level += 1
    warnings.warn(text, DeltaWarning, stacklevel=level + 1)

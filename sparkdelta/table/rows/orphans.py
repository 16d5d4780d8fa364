"""Reports of files below a table's root that no version refers to.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files, PROTOCOL.md#change-data-files
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import CommitOutcomeUnknownError, DeltaWarning, StorageError

_LOGGER = logging.getLogger(__name__)


@contextmanager
def report_orphans(
    table_root: str, directories: Iterable[str], delete: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Report the files that are left behind when an error leaves the block: in the log, and as a
    note of the error where Python has notes. An interrupted commit may have happened.

    Parameters
    ----------
    directories
        Of the new files when the block ends: data files, deletion vectors, change data files.
    delete
        Deletes a directory, so that nothing is left; only for a block that commits nothing.
    """
    try:
        yield
    except BaseException as error:
        left = list(directories)
        # Tasks of an interrupted write may still run.
        if delete is not None and isinstance(error, Exception):
            left = [directory for directory in left if not _is_deleted(delete, directory)]
        if not left:
            raise
        places = ", ".join(left)
        is_interrupted = delete is None and not isinstance(error, Exception)
        if is_interrupted or isinstance(error, CommitOutcomeUnknownError):
            text = f"It is unknown whether the files in {places} were committed to {table_root}."
        else:
            text = (
                f"Nothing was committed to {table_root}; unreferenced files may remain in {places}."
            )
        _LOGGER.warning(text)
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(text)
        raise


def _is_deleted(delete: Callable[[str], None], directory: str) -> bool:
    try:
        delete(directory)
    except (OSError, StorageError) as error:
        _LOGGER.info("Cannot delete %s: %s", directory, error)
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

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
from typing import TypeVar

from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.base.storage.table_files import TableFiles
from sparkdelta.exceptions import CommitOutcomeUnknownError, DeltaWarning, StorageError

_LOGGER = logging.getLogger(__name__)
_MAX_NAMED = 10

Argument = TypeVar("Argument")


@contextmanager
def report_orphans(
    table_root: str, places: Iterable[str], files: TableFiles | None = None
) -> Iterator[None]:
    """Report the files that are left behind when an error leaves the block: in the log, and as a
    note of the error where Python has notes. An interrupted commit may have happened.

    Parameters
    ----------
    places
        The absolute paths of the new files when the block ends: data files, deletion vectors,
        change data files. One that ends with a slash is a directory with such files.
    files
        Deletes them, so that nothing is left; only for a block that commits nothing.
    """
    try:
        yield
    except BaseException as error:
        left = list(places)
        # Tasks of an interrupted write may still run.
        if files is not None and isinstance(error, Exception):
            left = delete_places(left, files)
        if not left:
            raise
        named = ", ".join(left[:_MAX_NAMED])
        if len(left) > _MAX_NAMED:
            named += f" and {len(left) - _MAX_NAMED} more"
        is_interrupted = files is None and not isinstance(error, Exception)
        if is_interrupted or isinstance(error, CommitOutcomeUnknownError):
            text = f"It is unknown whether the new files were committed to {table_root}: {named}."
        else:
            text = f"Nothing was committed to {table_root}; unreferenced files may remain: {named}."
        _LOGGER.warning(text)
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(text)
        raise


def delete_emptied(directory: str, files: TableFiles) -> None:
    """Delete the directory from which files were moved. A failure is only logged: VACUUM deletes
    the rest.
    """
    if delete_places([f"{directory}/"], files):
        _LOGGER.warning("Cannot delete %s", directory)


def delete_places(places: Iterable[str], files: TableFiles) -> list[str]:
    """Delete files and directories, and return the places that could not be deleted.

    Parameters
    ----------
    places
        See `report_orphans`.
    """
    paths, left = [], []
    for place in places:
        if not place.endswith("/"):
            paths.append(place)
        elif not _is_done(files.delete_directory, place.rstrip("/")):
            left.append(place)
    return left if _is_done(files.delete, paths) else left + paths


def _is_done(delete: Callable[[Argument], None], argument: Argument) -> bool:
    try:
        delete(argument)
    except (OSError, StorageError) as error:
        _LOGGER.info("Cannot delete %s: %s", argument, error)
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

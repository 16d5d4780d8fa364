"""The options of a stream that reads a table."""

from __future__ import annotations

from dataclasses import dataclass

from sparkdelta.base.protocol.arguments import checked_count, checked_flag, checked_text
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.storage.stream_source import ReadLimit
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.table.log.change_range import Moment
from sparkdelta.table.log.time_travel import timestamp_ms

LATEST = "latest"
MAX_FILES_PER_TRIGGER = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """The options of `sparkdelta.read_stream`, validated by the constructor."""

    starting_version: Version | str | None = None
    starting_timestamp: Moment | None = None
    max_files_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    exclude_regex: str | None = None
    read_change_feed: bool = False
    fail_on_data_loss: bool = True

    def __post_init__(self) -> None:
        version = self.starting_version
        if version is not None and version != LATEST and (type(version) is not int or version < 0):
            problem = f"{version!r} is neither a version nor 'latest'"
            raise InvalidArgumentError(argument="starting_version", problem=problem)
        if self.starting_timestamp is not None:
            timestamp_ms(self.starting_timestamp)
            if version is not None:
                raise DeltaError.of("DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET")
        checked_count(self.max_files_per_trigger, "max_files_per_trigger")
        checked_count(self.max_bytes_per_trigger, "max_bytes_per_trigger")
        checked_text(self.exclude_regex, "exclude_regex")
        for flag in (
            "ignore_deletes", "ignore_changes", "skip_change_commits", "read_change_feed",
            "fail_on_data_loss",
        ):  # fmt: skip
            checked_flag(getattr(self, flag), flag)

    @property
    def has_start(self) -> bool:
        """True if the user chose where a new query starts."""
        return self.starting_version is not None or self.starting_timestamp is not None

    @property
    def starts_at_latest(self) -> bool:
        """True if a new query reads only later commits."""
        return self.starting_version == LATEST

    @property
    def is_limited(self) -> bool:
        """True if the user chose a limit of batches."""
        return self.max_files_per_trigger is not None or self.max_bytes_per_trigger is not None

    @property
    def limit(self) -> ReadLimit:
        """The limit of a batch."""
        files, size = self.max_files_per_trigger, self.max_bytes_per_trigger
        return ReadLimit(MAX_FILES_PER_TRIGGER if files is None and size is None else files, size)

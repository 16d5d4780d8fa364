"""Reports of scans: the files and bytes left after each step, as text and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.skipping.data_skipping_frames import DataSkipping, TermUse
from sparkdelta.base.skipping.file_mark_frames import (
    KEPT_BY_PARTITION_VALUES,
    KEPT_BY_STATISTICS,
    FileMarks,
)
from sparkdelta.base.spark.driver import read_row
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.log.log_reader import LogReader
from sparkdelta.table.log.state import TableState
from sparkdelta.table.scan.file_listing_modes import FileListingMode

_UNKNOWN, _SKIPPED = "not counted", "skipped"
_NOT_COUNTED = (
    "Files that Spark skips in the log are not counted; report(full=True) counts them by reading "
    "the whole log."
)
_READ_ALL = "All files were counted by reading the whole log once."
_BAR, _ROW, _LABEL = 320, 26, 170
_COLOR = "#4c78a8"


@dataclass(frozen=True, slots=True)
class FileCount:
    """Data files and their bytes."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The number of files left after each step of a scan, made by `Scan.report`; None if unknown.

    It prints as a small table, and is a picture in a notebook.

    Attributes
    ----------
    version
        Of the table.
    snapshot
        All files of the version.
    after_partition_values
        Files left after conditions on partition columns.
    after_statistics
        Files left of these after statistics: the files that the scan reads.
    after_row_filter
        Files of these with a matching row; known only without a condition.
    conditions
        The use of each of the conditions that must all be true.
    listing
        When `Scan.to_df` chooses the files, and why then.
    is_full
        True if every step was counted, by reading all of the log.
    """

    version: Version
    snapshot: FileCount | None
    after_partition_values: FileCount | None
    after_statistics: FileCount
    after_row_filter: FileCount | None
    conditions: tuple[TermUse, ...]
    listing: FileListingMode
    is_full: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts, lists, texts, numbers, booleans and None."""
        conditions = [asdict(use) for use in self.conditions]
        return {**asdict(self), "conditions": conditions, "listing": self.listing.value}

    def __str__(self) -> str:
        counts = [("", "files", "size", "of all files")]
        counts += [(name, *self._cells(count, other)) for name, count, other in self._steps()]
        lines = [f"Scan of version {self.version}", "", *_aligned(counts, right=True)]
        if self.conditions:
            uses = [(_shown(use), _used_for(use)) for use in self.conditions]
            lines += ["", *_aligned([("condition", "used for"), *uses])]
        return "\n".join([*lines, "", *self._notes()])

    def _repr_html_(self) -> str:
        rows = "".join(self._bars())
        width, height = _LABEL + _BAR + 220, _ROW * len(self._steps())
        picture = (
            f'<svg width="{width}" height="{height}" role="img" font-size="13" '
            f'font-family="sans-serif" fill="currentColor">{rows}</svg>'
        )
        uses = "".join(
            f"<tr><td><code>{escape(_shown(use))}</code></td><td>{escape(_used_for(use))}</td></tr>"
            for use in self.conditions
        )
        if uses:
            uses = f"<table><tr><th>condition</th><th>used for</th></tr>{uses}</table>"
        notes = " ".join(self._notes())
        title = f"<p><b>Scan of version {self.version}</b></p>"
        return f"<div>{title}{picture}{uses}<p><small>{notes}</small></p></div>"

    def _steps(self) -> list[tuple[str, FileCount | None, str]]:
        """Return each step's name and count, and the text to show for an unknown count."""
        steps: list[tuple[str, FileCount | None, str]] = [
            ("in the table", self.snapshot, _UNKNOWN),
            ("after partition values", self.after_partition_values, _SKIPPED),
            ("after statistics", self.after_statistics, _UNKNOWN),
        ]
        if self.after_row_filter is not None:
            steps.append(("after the row filter", self.after_row_filter, _UNKNOWN))
        return steps

    def _cells(self, count: FileCount | None, other: str) -> tuple[str, str, str]:
        if count is None:
            return other, "", ""
        return f"{count.files:,}", _size(count.size_bytes), self._share(count)

    def _share(self, count: FileCount) -> str:
        if self.snapshot is None or not self.snapshot.files:
            return ""
        percent = 100 * count.files / self.snapshot.files
        if 0 < percent < 0.01:
            return "< 0.01 %"
        return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.2f} %"

    def _notes(self) -> Iterator[str]:
        yield f"A read chooses its files {self.listing.value}."
        if self.is_full:
            yield _READ_ALL
        elif None in (self.snapshot, self.after_partition_values):
            yield _NOT_COUNTED

    def _bars(self) -> Iterator[str]:
        """Yield a bar for each step; its length is the share of the files."""
        steps = self._steps()
        most = max([1, *(count.files for _, count, _ in steps if count is not None)])
        for number, (name, count, other) in enumerate(steps):
            top, middle = number * _ROW + 3, number * _ROW + 17
            yield f'<text x="0" y="{middle}">{name}</text>'
            if count is None:
                yield (
                    f'<rect x="{_LABEL}" y="{top}" width="{_BAR}" height="{_ROW - 8}" fill="none" '
                    f'stroke="{_COLOR}" stroke-dasharray="4 3"/>'
                    f'<text x="{_LABEL + 8}" y="{middle}">{other}</text>'
                )
                continue
            width = max(1.0, _BAR * count.files / most) if count.files else 0
            label = " &#183; ".join(filter(None, self._cells(count, other)))
            yield (
                f'<rect x="{_LABEL}" y="{top}" width="{width:.1f}" height="{_ROW - 8}" '
                f'fill="{_COLOR}"/>'
                f'<text x="{_LABEL + width + 8:.1f}" y="{middle}">{label}</text>'
            )


def counted_report(
    log: LogReader,
    files: DataFrame,
    skipping: DataSkipping | None,
    checksum: VersionChecksum | None,
    listing: FileListingMode,
) -> ScanReport:
    """Return a report that counts only the files of the scan.

    Parameters
    ----------
    files
        `size` of the files that the scan reads.
    skipping
        The data skipping that chose them; None without a condition.
    log, checksum
        Sources of the number of all files.
    """
    version = log.segment.version
    (kept,) = _counts(files, F.lit(True), version=version)
    uses = skipping.uses() if skipping is not None else ()
    chooses_by_statistics = any(use.by_statistics for use in uses)
    chooses_by_partition = any(use.by_partition_values and not use.by_statistics for use in uses)
    everything: FileCount | None = kept
    if chooses_by_statistics or chooses_by_partition:
        everything = _in_checksum(checksum) or _in_tags(log)
    after_partition = None if chooses_by_partition else everything
    return ScanReport(
        version=version,
        snapshot=everything,
        after_partition_values=after_partition if chooses_by_statistics else kept,
        after_statistics=kept,
        after_row_filter=kept if skipping is None else None,
        conditions=uses,
        listing=listing,
        is_full=False,
    )


def full_report(
    state: TableState, skipping: DataSkipping | None, listing: FileListingMode
) -> ScanReport:
    """Return a report that counts every step by one read of the whole log."""
    version = state.log.segment.version
    if skipping is None:
        (kept,) = _counts(state.scan_files("size"), F.lit(True), version=version)
        return ScanReport(version, kept, kept, kept, kept, (), listing, is_full=True)
    # Marks do not survive in a cache of files, which has the table's own columns.
    files = replace(state, cached=None).scan_files(
        "size", KEPT_BY_PARTITION_VALUES, KEPT_BY_STATISTICS, skipping=FileMarks(skipping)
    )
    steps = (F.lit(True), F.col(KEPT_BY_PARTITION_VALUES), F.col(KEPT_BY_STATISTICS))
    everything, after_partition, kept = _counts(files, *steps, version=version)
    return ScanReport(
        version, everything, after_partition, kept, None, skipping.uses(), listing, is_full=True
    )


def _counts(files: DataFrame, *steps: Column, version: Version) -> list[FileCount]:
    """Return files and bytes left after each step, in one query."""
    totals = [
        total.alias(f"{name}{number}")
        for number, step in enumerate(steps)
        for name, total in (
            ("files", F.count_if(step)),
            ("bytes", F.coalesce(F.sum(F.when(step, F.col("size"))), F.lit(0))),
        )
    ]
    row = read_row(files.agg(*totals), what="file counts of a scan", version=version)
    return [FileCount(row[f"files{number}"], row[f"bytes{number}"]) for number in range(len(steps))]


def _in_checksum(checksum: VersionChecksum | None) -> FileCount | None:
    if checksum is None or checksum.num_files is None or checksum.table_size_bytes is None:
        return None
    return FileCount(checksum.num_files, checksum.table_size_bytes)


def _in_tags(log: LogReader) -> FileCount | None:
    totals = log.totals_in_tags()
    return None if totals is None else FileCount(*totals)


def _used_for(use: TermUse) -> str:
    if use.reason is not None:
        return f"row filter only: {use.reason}"
    if use.by_partition_values and use.by_statistics:
        return "both"
    return "partition values" if use.by_partition_values else "statistics"


def _shown(use: TermUse) -> str:
    return f"implied: {use.condition}" if use.is_implied else use.condition


def _size(size_bytes: int) -> str:
    size, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            break
        size /= 1024
    return f"{size_bytes} B" if unit == "B" else f"{size:,.1f} {unit}"


def _aligned(rows: Sequence[tuple[str, ...]], *, right: bool = False) -> list[str]:
    """Return rows as lines with columns under each other; all but the first aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if right and number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]

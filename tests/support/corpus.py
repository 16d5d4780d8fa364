"""The corpus ``delta-spec-testdata``: where it lies and what it says.

Two collections of real tables with expected results: ``tables`` (one ``case.json`` each) and the
packed ``workloads`` (one JSON file per query). Everything here is plain parsing; what a reader has
to do with it is in ``tests/conformance``. All tables are read-only.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CORPUS_VARIABLE = "DELTA_SPEC_TESTDATA"
POLICY_VARIABLE = "SPARKDELTA_CONFORMANCE"
_ROOT = Path(__file__).resolve().parents[2]


def corpus_or_skip() -> Path:
    """Return the corpus, or skip the calling module (fail where conformance is required).

    A path named by the environment variable has to exist: a typing error there must not turn
    the whole suite into skips.
    """
    named = os.environ.get(CORPUS_VARIABLE)
    directory = Path(named) if named else _ROOT.parent / "shared" / "delta-spec-testdata"
    if (directory / "index.json").is_file():
        return directory.resolve()
    if named:
        raise FileNotFoundError(f"{CORPUS_VARIABLE}={named} holds no index.json")
    missing = f"delta-spec-testdata not found; set {CORPUS_VARIABLE} to its directory"
    if os.environ.get(POLICY_VARIABLE) == "required":
        pytest.fail(f"{missing} ({POLICY_VARIABLE}=required)", pytrace=False)
    pytest.skip(missing, allow_module_level=True)


@dataclass(frozen=True, slots=True)
class Query:
    """One read of one table: what `read_delta` takes."""

    location: str
    version: int | None = None
    timestamp: str | None = None
    where: str | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ChangeRead:
    """One read of the changes of a table: what `read_changes` takes, and the expected rows."""

    id: str
    location: str
    start_version: int
    end_version: int | None
    where: str | None
    rows_file: Path | None


@dataclass(frozen=True, slots=True)
class Predicate:
    """A comparison of one top-level column with a literal, as ``case.json`` gives it."""

    column: str
    op: str
    type: str
    value: Any

    def spark_sql(self) -> str:
        """Return the predicate in Spark SQL, the literal in the type of the column."""
        column = "`" + self.column.replace("`", "``") + "`"
        if self.op == "is_null":
            return f"{column} IS NULL"
        return f"{column} {self.op} {spark_literal(self.type, self.value)}"


def spark_literal(data_type: str, value: Any) -> str:
    """Return `value` as a Spark SQL literal of a Delta primitive type (timestamps are UTC)."""
    suffixes = {"byte": "Y", "short": "S", "integer": "", "long": "L", "float": "F", "double": "D"}
    if data_type in suffixes:
        return f"{value}{suffixes[data_type]}"
    if data_type.startswith("decimal"):
        return f"CAST('{value}' AS {data_type})"
    if data_type == "boolean":
        return str(value).upper()
    if data_type == "timestamp":
        has_zone = value.endswith("Z") or "+" in value[10:] or "-" in value[10:]
        return f"TIMESTAMP'{value}'" if has_zone else f"TIMESTAMP'{value}Z'"
    if data_type == "timestamp_ntz":
        return f"TIMESTAMP_NTZ'{value}'"
    if data_type == "date":
        return f"DATE'{value}'"
    if data_type == "string":
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    raise ValueError(f"no literal for type {data_type}")


@dataclass(frozen=True, slots=True)
class CaseRead:
    """One entry of ``reads``: a version, perhaps a predicate, and the rows that must come back."""

    id: str
    query: Query
    filtered: bool
    verified: bool
    expect_error: str | None
    num_rows: int | None
    num_files: int | None
    rows_file: Path | None
    variant_json_file: Path | None


@dataclass(frozen=True, slots=True)
class LiveFile:
    """One add action that is live at the latest version."""

    path: str
    partition_values: tuple[tuple[str, str | None], ...]
    size: int
    dv_cardinality: int | None


@dataclass(frozen=True, slots=True)
class Case:
    """One table of the corpus with its ``case.json``."""

    name: str
    directory: Path
    document: Mapping[str, Any]
    reads: tuple[CaseRead, ...]

    @property
    def id(self) -> str:
        return self.name

    @property
    def query(self) -> Query:
        """The latest version of the table."""
        return Query(table_location(self.directory))

    @property
    def verified(self) -> bool:
        return bool(self.document["verification"]["verified"])

    @property
    def expect_error(self) -> str | None:
        error: str | None = self.document["expect_error"]
        return error

    @property
    def change_reads(self) -> list[ChangeRead]:
        return [
            ChangeRead(
                f"{self.name}:cdf-v{read['start_version']}-v{read['end_version']}",
                table_location(self.directory),
                read["start_version"],
                read["end_version"],
                None,
                self.directory / read["rows_file"],
            )
            for read in self.document["cdf"]
        ]

    def live_files(self) -> list[LiveFile] | None:
        """Return the live files of the latest version, None where the case does not list them."""
        if not self.document.get("files_file"):
            return None
        text = (self.directory / self.document["files_file"]).read_text(encoding="utf-8")
        # Not splitlines(): file names may hold characters that it takes for line ends.
        return [_live_file(json.loads(line)) for line in text.split("\n") if line]


def _live_file(entry: Mapping[str, Any]) -> LiveFile:
    values = tuple(sorted(entry["partition_values"].items()))
    return LiveFile(entry["path"], values, entry["size"], entry["dv_cardinality"])


def table_location(directory: Path) -> str:
    """Return the root of the Delta table of a case or workload."""
    return str(directory / "delta")


def load_cases(corpus: Path) -> list[Case]:
    """Return all cases, by name."""
    return [_case(path.parent) for path in sorted((corpus / "tables").glob("*/case.json"))]


def _case(directory: Path) -> Case:
    document = json.loads((directory / "case.json").read_text(encoding="utf-8"))
    reads = tuple(_case_read(directory, entry) for entry in document["reads"])
    return Case(document["name"], directory, document, reads)


def _case_read(directory: Path, entry: Mapping[str, Any]) -> CaseRead:
    predicate = None
    if entry["predicate"] is not None:
        given = entry["predicate"]
        predicate = Predicate(given["column"], given["op"], given["type"], given["value"])
    name = f"{directory.name}:v{entry['version']}"
    where = predicate.spark_sql() if predicate else None
    return CaseRead(
        id=f"{name}:{entry['predicate']['sql']}" if predicate else name,
        query=Query(table_location(directory), version=entry["version"], where=where),
        filtered=predicate is not None,
        verified=entry["verified"],
        expect_error=entry.get("expect_error"),
        num_rows=entry["num_rows"],
        num_files=entry.get("num_files"),
        rows_file=_optional_path(directory, entry["rows_file"]),
        variant_json_file=_optional_path(directory, entry.get("variant_json_file")),
    )


def _optional_path(directory: Path, name: str | None) -> Path | None:
    return directory / name if name else None


@dataclass(frozen=True, slots=True)
class WorkloadTable:
    """One workload table; only those with `gate` decide acceptance."""

    name: str
    suite: str
    gate: bool
    note: str | None
    directory: Path


@dataclass(frozen=True, slots=True)
class Spec:
    """One query of a workload with its expected result or error, or the commits to write."""

    id: str
    type: str
    table: WorkloadTable
    query: Query
    expected: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    expected_data: Path | None
    commits: tuple[Mapping[str, Any], ...]
    changes: ChangeRead | None = None


@dataclass(frozen=True, slots=True)
class Workloads:
    """The unpacked workloads."""

    tables: tuple[WorkloadTable, ...]
    specs: tuple[Spec, ...]


def load_workloads(corpus: Path) -> Workloads:
    """Return all workload tables and specs, unpacking them when this machine has not yet."""
    root = unpack_workloads(corpus / "workloads.tar.xz")
    index = json.loads((root / "index.json").read_text(encoding="utf-8"))
    tables = {
        name: WorkloadTable(name, entry["suite"], entry["gate"], entry.get("note"), root / name)
        for name, entry in index["tables"].items()
    }
    specs = tuple(_spec(root, tables[entry["test"]], entry) for entry in index["specs"])
    return Workloads(tuple(tables.values()), specs)


def _spec(root: Path, table: WorkloadTable, entry: Mapping[str, Any]) -> Spec:
    document = json.loads((root / entry["spec_path"]).read_text(encoding="utf-8"))
    name: str = entry["spec"]
    columns: Sequence[str] | None = document.get("columns")
    expected, error = document.get("expected"), document.get("error")
    if error is None and entry["outcome"] != "success":
        raise ValueError(f"{name}: outcome {entry['outcome']} without an error")
    return Spec(
        # Write specs all have one name.
        id=name if name.startswith(table.name) else f"{table.name}:{name}",
        type=entry["type"],
        table=table,
        query=Query(
            table_location(table.directory),
            version=document.get("version"),
            timestamp=document.get("timestamp"),
            where=document.get("predicate"),
            columns=tuple(columns) if columns is not None else None,
        ),
        expected=expected,
        error=error,
        expected_data=_optional_path(root, entry.get("expected_data")),
        commits=tuple(document.get("commits", ())),
        changes=None if entry["type"] != "cdf" else _change_read(root, table, document, entry),
    )


def _change_read(
    root: Path,
    table: WorkloadTable,
    document: Mapping[str, Any],
    entry: Mapping[str, Any],
) -> ChangeRead:
    return ChangeRead(
        entry["spec"],
        table_location(table.directory),
        document["startVersion"],
        document.get("endVersion"),
        document.get("predicate"),
        _optional_path(root, entry.get("expected_data")),
    )


def unpack_workloads(archive: Path) -> Path:
    """Unpack the workloads once per archive and machine, and return their directory.

    Modification times are part of the data: they are the commit times of tables without in-commit
    timestamps. The copy appears under its final name only when it is complete.
    """
    stat = archive.stat()
    identity = f"{archive}|{stat.st_size}|{stat.st_mtime_ns}|{os.getuid()}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:16]
    target = Path(tempfile.gettempdir()) / f"sparkdelta-workloads-{key}"
    if (target / "index.json").is_file():
        return target
    staging = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
    try:
        with tarfile.open(archive) as packed:
            # Python before 3.10.12 and 3.11.4 has no extraction filters.
            if hasattr(tarfile, "data_filter"):
                packed.extractall(staging, filter="data")
            else:
                packed.extractall(staging)
        _restore_commit_times(staging / "workloads")
        try:
            (staging / "workloads").rename(target)
        except OSError:
            # Another process was faster; anything else is an error.
            if not (target / "index.json").is_file():
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _restore_commit_times(root: Path) -> None:
    tables = json.loads((root / "index.json").read_text(encoding="utf-8"))["tables"]
    for name, entry in tables.items():
        for version, seconds in entry["commit_mtimes"].items():
            commit = root / name / "delta" / "_delta_log" / f"{int(version):020d}.json"
            if commit.is_file():
                os.utime(commit, (seconds, seconds))

"""Tests of the public names, signatures and errors: none of them changes by accident."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import sparkdelta
from sparkdelta import (
    DeltaTable,
    clean_log,
    clone,
    compact_log,
    convert_to_delta,
    exceptions,
    load_snapshot,
    optimize,
    read_changes,
    read_delta,
    read_stream,
    recompute_statistics,
    reorg,
    repair,
    vacuum,
    verify,
    write_checkpoint,
    write_delta,
    write_stream,
    write_version_checksum,
)
from sparkdelta.api.delta_table import (
    DeltaMergeBuilder,
    DeltaOptimizeBuilder,
    DeltaTableBuilder,
    IdentityGenerator,
)
from sparkdelta.operations.checkpoint.checkpoint_options import ADDS_PER_SIDECAR
from sparkdelta.table.scan.scan import MAX_DRIVER_FILES
from tests.support.errors import raises

API = json.loads((Path(__file__).parent / "delta_spark_api.json").read_text())
REFERENCE = API["DeltaTable"]
IMPLEMENTED = {
    "addFeatureSupport", "alias", "clone", "cloneAtTimestamp", "cloneAtVersion", "convertToDelta",
    "create",
    "createIfNotExists", "createOrReplace", "delete", "detail", "dropFeatureSupport", "forName",
    "forPath",
    "generate", "history", "isDeltaTable", "merge", "optimize",
    "replace", "restoreToTimestamp", "restoreToVersion",
    "toDF", "update", "upgradeTableProtocol", "vacuum",
}  # fmt: skip


def _parameters(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]


def test_the_public_names() -> None:
    assert set(sparkdelta.__all__) == {
        "AlterTable", "DeltaError", "DeltaTable", "Scan", "Snapshot", "load_snapshot", "read_delta",
        "read_changes", "alter_table", "clean_log", "clone", "compact_log", "convert_to_delta",
        "configure", "disable", "enable",
        "Catalog", "RatifiedCommits", "StagedCommit", "use_catalog",
        "optimize", "recompute_statistics", "reorg", "repair", "sql",
        "vacuum", "verify",
        "write_checkpoint", "write_version_checksum", "write_delta", "write_stream",
        "read_stream",
    }  # fmt: skip
    public = {name for name in dir(sparkdelta) if not name.startswith("_")}
    assert public == {*sparkdelta.__all__, "exceptions", "tables"}
    assert all(hasattr(sparkdelta, name) for name in public)
    assert not hasattr(sparkdelta, "Table")


def test_type_checkers_see_the_names_that_are_imported_at_their_first_use() -> None:
    source = ast.parse(Path(str(sparkdelta.__file__)).read_text())
    found = [node for node in ast.walk(source) if isinstance(node, ast.ImportFrom)]
    seen = {
        f"{node.module}".removeprefix("sparkdelta."): tuple(alias.name for alias in node.names)
        for node in found
        if f"{node.module}".startswith("sparkdelta.")
    }
    assert seen == sparkdelta._MODULES


_NOT_NEEDED = {
    "import sparkdelta": ("pyspark", "py4j", "pyarrow", "numpy", "pandas", "sqlglot", "http"),
    "from sparkdelta import read_delta, write_delta": ("pandas", "pyarrow.dataset", "sqlglot"),
    "from sparkdelta import DeltaTable": ("pandas", "pyarrow.dataset", "sqlglot", "grpc"),
}


@pytest.mark.parametrize("statement", _NOT_NEEDED)
def test_an_import_takes_no_modules_that_it_does_not_need(statement: str) -> None:
    loaded = _run(f"import sys; {statement}; print(*sys.modules)").split()
    assert "sparkdelta" in loaded
    assert not {*_NOT_NEEDED[statement]} & {*loaded}


def test_sql_is_the_function_whatever_was_imported_before() -> None:
    """There is a package of this name."""
    for before in ("sparkdelta", "sparkdelta.sql", "sparkdelta.sql.grammar.tokens"):
        assert _run(f"import {before}, sparkdelta; print(sparkdelta.sql.__name__)") == "sql"
        assert _run(f"import {before}; from sparkdelta import sql; print(sql.__name__)") == "sql"


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_our_own_verbs() -> None:
    both = ["version=None", "timestamp=None"]
    assert _parameters(convert_to_delta) == [
        "spark", "path", "partition_schema=None", "infer_partitions=False",
        "collect_statistics=True", "properties=None",
    ]  # fmt: skip
    assert _parameters(clone) == [
        "spark", "source", "target", "deep=False", *both, "replace=False", "properties=None",
    ]  # fmt: skip
    assert _parameters(read_delta) == [
        "spark", "path", *both, "where=None", "columns=None", "partition_time_zone='UTC'",
        f"max_driver_files={MAX_DRIVER_FILES}", "progress=True",
    ]  # fmt: skip
    assert _parameters(read_changes) == [
        "spark", "path", "start_version=None", "end_version=None", "start_timestamp=None",
        "end_timestamp=None", "where=None", "columns=None", "net=False",
        "partition_time_zone='UTC'", f"max_driver_files={MAX_DRIVER_FILES}", "progress=True",
    ]  # fmt: skip
    assert _parameters(load_snapshot) == [
        "spark", "path", *both, "partition_time_zone='UTC'", "progress=True",
    ]  # fmt: skip
    assert _parameters(write_checkpoint) == [
        "spark", "path", "version=None", "kind=None", "layout='clustered'", "incremental=True",
        f"adds_per_sidecar={ADDS_PER_SIDECAR}", "compression='snappy'", "progress=True",
    ]  # fmt: skip
    assert _parameters(clean_log) == ["spark", "path", "dry_run=False", "now_ms=None"]
    assert _parameters(compact_log) == ["spark", "path", "start=None", "end=None"]
    assert _parameters(optimize) == [
        "spark", "path", "where=None", "zorder_by=None", "full=False", "target_file_size=None",
        "max_bytes=None", "min_cube_size=None", "max_cube_size=None", "dry_run=False",
    ]  # fmt: skip
    assert _parameters(reorg) == [
        "spark", "path", "where=None", "target_file_size=None", "max_bytes=None", "dry_run=False",
    ]  # fmt: skip
    assert _parameters(vacuum) == [
        "spark", "path", "retention_hours=None", "mode='full'", "dry_run=False", "inventory=None",
        "check_retention=True", "deletes_per_second=None", "log_runs=None", "progress=True",
    ]  # fmt: skip
    assert _parameters(repair) == ["spark", "path", "dry_run=True"]
    assert _parameters(recompute_statistics) == ["spark", "path", "where=None", "columns=None"]
    assert _parameters(verify) == ["spark", "path", "version=None", "footers=False"]
    assert _parameters(write_version_checksum) == ["spark", "path", "version=None"]


def test_how_rows_are_written() -> None:
    assert _parameters(write_delta) == [
        "df", "path", "mode='error'", "partition_by=None", "cluster_by=None",
        "replace_where=None", "partition_overwrite_mode='static'",
        "merge_schema=False", "overwrite_schema=False",
        "txn_app_id=None", "txn_version=None", "user_metadata=None", "properties=None",
        "data_change=True", "max_records_per_file=None", "target_file_size=None",
        "compression=None",
    ]  # fmt: skip


def test_how_streams_are_read_and_written() -> None:
    assert _parameters(read_stream) == [
        "spark", "path", "starting_version=None", "starting_timestamp=None",
        "max_files_per_trigger=None", "max_bytes_per_trigger=None", "ignore_deletes=False",
        "ignore_changes=False", "skip_change_commits=False", "exclude_regex=None",
        "read_change_feed=False", "fail_on_data_loss=True", "partition_time_zone='UTC'",
    ]  # fmt: skip
    assert _parameters(write_stream) == [
        "df", "path", "checkpoint_location", "output_mode='append'", "trigger=None",
        "query_name=None", "partition_by=None", "merge_schema=False", "overwrite_schema=False",
        "user_metadata=None", "properties=None", "max_records_per_file=None",
        "target_file_size=None", "compression=None",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "others"),
    [
        (read_delta, {"versionAsOf": "version", "timestampAsOf": "timestamp", "colums": "columns"}),
        (read_changes, {"startingVersion": "start_version", "endingTimestamp": "end_timestamp"}),
        (
            read_stream,
            {
                "startingVersion": "starting_version", "startingTimestamp": "starting_timestamp",
                "maxFilesPerTrigger": "max_files_per_trigger",
                "maxBytesPerTrigger": "max_bytes_per_trigger", "ignoreDeletes": "ignore_deletes",
                "ignoreChanges": "ignore_changes", "skipChangeCommits": "skip_change_commits",
                "excludeRegex": "exclude_regex", "readChangeFeed": "read_change_feed",
                "failOnDataLoss": "fail_on_data_loss",
            },
        ),
        (load_snapshot, {"versionAsOf": "version", "time_stamp": "timestamp"}),
        (
            write_delta,
            {
                "partitionBy": "partition_by", "mergeSchema": "merge_schema",
                "overwriteSchema": "overwrite_schema", "replaceWhere": "replace_where",
                "partitionOverwriteMode": "partition_overwrite_mode", "txnAppId": "txn_app_id",
                "txnVersion": "txn_version", "userMetadata": "user_metadata",
                "dataChange": "data_change", "maxRecordsPerFile": "max_records_per_file",
                "optimizeWrite": "target_file_size", "partitoin_by": "partition_by",
            },
        ),
    ],
)  # fmt: skip
def test_names_of_delta_spark_and_slips(
    verb: Callable[..., Any], others: Mapping[str, str]
) -> None:
    """The error names our argument, and is a TypeError as of any function."""
    for name, ours in others.items():
        with raises("DELTA_UNKNOWN_ARGUMENT") as raised:
            verb(None, "/nowhere", **{name: None})
        assert isinstance(raised.value, TypeError)
        assert raised.value.argument == name
        assert raised.value.suggestion == f"Use {ours}"
    with raises("DELTA_UNKNOWN_ARGUMENT") as raised:
        verb(None, "/nowhere", zzz=1)
    assert all(name in raised.value.suggestion for name in inspect.signature(verb).parameters)
    assert verb.__doc__


@pytest.mark.parametrize("name", sorted(IMPLEMENTED))
def test_delta_tables_signatures_are_delta_sparks(name: str) -> None:
    method = inspect.getattr_static(DeltaTable, name)
    function = method.__func__ if isinstance(method, classmethod) else method
    # A mutable default of theirs may be None of ours.
    theirs = [p.replace("={}", "=None") for p in REFERENCE[name]]
    assert _parameters(function) == theirs


@pytest.mark.parametrize(
    "builder", [DeltaTableBuilder, DeltaMergeBuilder, DeltaOptimizeBuilder, IdentityGenerator]
)
def test_builders_are_delta_sparks(builder: type) -> None:
    reference = API[builder.__name__]
    assert {n: _parameters(getattr(builder, n)) for n in reference} == reference
    own = {name for name in vars(builder) if not name.startswith("_")}
    assert own - {"start", "step"} <= reference.keys()


def test_delta_table_has_nothing_of_its_own() -> None:
    methods = {name for name in vars(DeltaTable) if not name.startswith("_")}
    assert methods == IMPLEMENTED


def test_delta_spark_still_has_these_signatures() -> None:
    module = pytest.importorskip("delta.tables")
    if module.__spec__.origin == "sparkdelta":
        pytest.skip("delta-spark is not installed: the package is ours")
    found: dict[str, dict[str, list[str]]] = {}
    for owner in (name for name in API if name != "delta-spark"):
        for name in API[owner]:
            method = inspect.getattr_static(getattr(module, owner), name)
            function = method.__func__ if isinstance(method, classmethod) else method
            found.setdefault(owner, {})[name] = _parameters(inspect.unwrap(function))
    assert found == {name: names for name, names in API.items() if name != "delta-spark"}


@pytest.mark.parametrize(
    "name",
    [
        "DeltaConcurrentModificationException", "ConcurrentWriteException",
        "MetadataChangedException", "ProtocolChangedException", "ConcurrentAppendException",
        "ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException",
        "ConcurrentTransactionException",
    ],
)  # fmt: skip
def test_errors_with_names_of_delta_spark(name: str) -> None:
    assert issubclass(getattr(exceptions, name), exceptions.DeltaConcurrentModificationException)

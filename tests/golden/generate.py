"""Write the golden tables: ``python -m tests.golden.generate [name ...]``.

Needs delta-spark 4.4.0 (its JARs are resolved by Spark) and deltalake. Random names inside the
tables (files, table ids) differ from run to run; the rows do not.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import NullType

from tests.golden import (
    rs_tables,
    spark_columns,
    spark_deletion_vectors,
    spark_log,
    spark_operations,
    spark_partitions,
    spark_types,
)
from tests.golden.expected import comparable, holds_variant, unescaped
from tests.golden.workbench import CATALOGUE, DeltaSparkBench, Golden
from tests.support.delta_spark import VERSION, delta_session

TABLES = Path(__file__).parent / "tables"
README_HEAD = """# Golden tables

Small Delta tables written by other engines, each with the rows that the same engine reads at each
version. `python -m tests.golden.generate` generates them and this file; tests load them with
`tests/golden/cases.py`. Do not rename files below `delta/`; modification times are irrelevant.

Keys of `case.json`: `columns` are the columns that a read selects; `json_columns` (with variants)
are expected as `to_json(struct(column AS v))`, `void_columns` as null strings; `expect_error` means
that the read must fail; `protocol` and `num_files` (live files) are those of the latest version;
`commit_timestamps` are those stored in the commits.

| table | writer | versions | about |
|---|---|---|---|"""
DEFINITIONS = (
    rs_tables,
    spark_columns,
    spark_deletion_vectors,
    spark_log,
    spark_operations,
    spark_partitions,
    spark_types,
)


def main(names: list[str]) -> int:
    """Write the named tables, or all of them; give back how many failed."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        session = delta_session(Path(scratch))
        for golden in CATALOGUE.values():
            if names and golden.name not in names:
                continue
            root = Path(scratch) / golden.name
            try:
                if golden.writer == "delta-rs":
                    case = _generate_with_delta_rs(golden, root)
                else:
                    case = _generate_with_delta_spark(
                        golden, DeltaSparkBench(session, root / "delta"), root
                    )
            except Exception:  # noqa: BLE001  (the other tables are still worth writing)
                failed += 1
                print(f"FAILED {golden.name}\n{traceback.format_exc(limit=-3)[-3000:]}", flush=True)
                continue
            _publish(golden, case, root)
            print(f"wrote {golden.name}: versions to {case['versions']['latest']}", flush=True)
        session.stop()
    _write_catalogue()
    return failed


def _generate_with_delta_spark(
    golden: Golden, bench: DeltaSparkBench, root: Path
) -> dict[str, Any]:
    golden.build(bench)
    detail = bench.spark.sql(f"DESCRIBE DETAIL delta.`{bench.path}`").first()
    last = bench.spark.sql(f"DESCRIBE HISTORY delta.`{bench.path}` LIMIT 1").first()
    assert detail is not None
    assert last is not None
    latest = last["version"]
    reads = []
    for version in _versions(golden, latest):
        if version in bench.unreadable:
            reads.append({"version": version, "expect_error": bench.unreadable[version]})
            continue
        rows = bench.read(version)
        reads.append({"version": version, **_expect(rows, root, f"v{version}")})
        if golden.row_ids and _row_tracking_at(bench, version):
            extra = ["_metadata.row_id", "_metadata.row_commit_version"]
            columns = [*rows.columns, *extra]
            expected = _expect(rows.select(*columns), root, f"v{version}.row-ids")
            reads.append({"version": version, "columns": columns, **expected})
    case = _case(golden, f"delta-spark {VERSION}", latest, list(detail["partitionColumns"]), reads)
    case["num_files"] = detail["numFiles"]
    case["protocol"] = [
        detail["minReaderVersion"],
        detail["minWriterVersion"],
        *detail["tableFeatures"],
    ]
    if "inCommitTimestamp" in golden.features:
        case["commit_timestamps"] = _in_commit_timestamps(bench.path)
    return case


def _row_tracking_at(bench: DeltaSparkBench, version: int) -> bool:
    try:
        bench.read(version).select("_metadata.row_id")
    except AnalysisException:
        return False
    return True


def _in_commit_timestamps(table: Path) -> dict[str, int]:
    """Take the timestamps from the commits: the others are file times, which copies change."""
    found = {}
    for file in sorted((table / "_delta_log").glob("*.json")):
        first = json.loads(file.read_text(encoding="utf-8").split("\n")[0])
        timestamp = first.get("commitInfo", {}).get("inCommitTimestamp")
        if timestamp is not None:
            found[str(int(file.stem))] = timestamp
    return found


def _expect(rows: DataFrame, root: Path, stem: str) -> dict[str, Any]:
    fields = rows.schema.fields
    expected: dict[str, Any] = {}
    if variants := [field.name for field in fields if holds_variant(field.dataType)]:
        expected["json_columns"] = variants
    if void := [field.name for field in fields if isinstance(field.dataType, NullType)]:
        expected["void_columns"] = void
    return {**expected, **_write_rows(comparable(rows).toArrow(), root, stem)}


def _write_rows(table: pa.Table, root: Path, stem: str) -> dict[str, Any]:
    file = root / "expected" / f"{stem}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file, compression="zstd", store_schema=False)
    return {"num_rows": table.num_rows, "rows_file": f"expected/{stem}.parquet"}


def _generate_with_delta_rs(golden: Golden, root: Path) -> dict[str, Any]:
    path = root / "delta"
    path.parent.mkdir(parents=True, exist_ok=True)
    golden.build(path)
    latest = deltalake.DeltaTable(path)
    reads = []
    for version in _versions(golden, latest.version()):
        table = deltalake.DeltaTable(path, version=version)
        schema = pa.schema(table.schema().to_arrow())
        rows = unescaped(table.to_pyarrow_table().cast(schema), golden.escaped)
        reads.append({"version": version, **_write_rows(rows, root, f"v{version}")})
    case = _case(
        golden,
        f"delta-rs {deltalake.__version__}",
        latest.version(),
        list(latest.metadata().partition_columns),
        reads,
    )
    case["num_files"] = len(latest.file_uris())
    protocol = latest.protocol()
    features = {*(protocol.reader_features or []), *(protocol.writer_features or [])}
    case["protocol"] = [protocol.min_reader_version, protocol.min_writer_version, *sorted(features)]
    return case


def _versions(golden: Golden, latest: int) -> list[int]:
    return list(golden.versions) if golden.versions is not None else list(range(latest + 1))


def _case(
    golden: Golden,
    writer: str,
    latest: int,
    partition_columns: list[str],
    reads: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "name": golden.name,
        "writer": writer,
        "description": golden.description,
        "features": list(golden.features),
        "versions": {"latest": latest},
        "partition_columns": partition_columns,
        "reads": reads,
    }


def _publish(golden: Golden, case: dict[str, Any], root: Path) -> None:
    for file in [*root.rglob(".*.crc")]:
        file.unlink()  # checksums of Hadoop's local file system, no part of a Delta table
    text = json.dumps(case, indent=1, ensure_ascii=False) + "\n"
    (root / "case.json").write_text(text, encoding="utf-8")
    target = TABLES / golden.name
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(root, target)


def _write_catalogue() -> None:
    lines = [README_HEAD]
    for file in sorted(TABLES.glob("*/case.json")):
        case = json.loads(file.read_text(encoding="utf-8"))
        latest = case["versions"]["latest"]
        lines.append(f"| {case['name']} | {case['writer']} | 0-{latest} | {case['description']} |")
    (TABLES.parent / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

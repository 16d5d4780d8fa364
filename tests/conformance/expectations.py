"""Expectations of the conformance suite beyond the corpus itself.

Everything that is left out, refused or read differently is named here with its reason, and
nothing else is: a name that is not in the corpus fails `test_expectations`, and so does a known gap
that passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import pytest

from sparkdelta.exceptions import (
    DeltaError,
)
from tests.support.corpus import Spec

# Sizes of the corpus. A case that is lost on the way to pytest must not look like success.
CASES = 147
VERIFIED_CASES = 142
REFUSED_CASES = 11
VERIFIED_READS = 293
VERIFIED_FILTERED_READS = 202
REFUSED_READS = 36
UNVERIFIED_READS = 5
CASE_CDF_READS = 29
WORKLOAD_TABLES = 323
GATING_WORKLOAD_TABLES = 318
SPECS = 1293
GATING_READS = 770
GATING_SNAPSHOTS = 484
GATING_CHECKSUMS = 2
GATING_WRITES = 10
GATING_CHANGES = 12
NOT_GATING_SPECS = 15

# Error categories of case.json.
CASE_ERRORS: Mapping[str, str] = {
    "catalog_managed_without_catalog": "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
    "invalid_metadata": "DELTA_SCHEMA_NOT_SET",
    "missing_data_file": "DELTA_FILE_NOT_FOUND",
    "missing_metadata": "DELTA_STATE_RECOVER_ERROR",
    "missing_protocol": "DELTA_STATE_RECOVER_ERROR",
    "non_contiguous_log": "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "not_a_delta_table": "DELTA_TABLE_NOT_FOUND",
    "unsupported_version": "DELTA_INVALID_PROTOCOL_VERSION",
}

# What a case marked `allow_unsupported` may raise instead of returning rows.
UNSUPPORTED = (
    "DELTA_UNSUPPORTED_DATA_TYPES",
    "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
    "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
)

# Cases marked `allow_unsupported` that are refused; all others have to be read.
REFUSED_AS_UNSUPPORTED: Mapping[str, str] = {
    "krs-type-widening": "byte to decimal(4,1) is no change that type widening allows",
}

# Verified reads of such cases; the versions before the change are read.
READS_REFUSED_AS_UNSUPPORTED = ("krs-type-widening:v2",)

# delta-spark's error codes are advisory, but these have the same meaning here.
# Codes that are not here stand for failures inside Spark: any DeltaError will do.
SPEC_ERRORS = frozenset(
    {
        "DELTA_MISSING_CHANGE_DATA",
        "DELTA_INVALID_PROTOCOL_VERSION",
        "DELTA_STATE_RECOVER_ERROR",
        "DELTA_TABLE_NOT_FOUND",
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        "DELTA_TRUNCATED_TRANSACTION_LOG",
        "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        "DELTA_VERSIONS_NOT_CONTIGUOUS",
    }
)

# Specs whose code says less than the specification does about what is wrong.
SPEC_ERROR_BY_ID: Mapping[str, str | type[Exception]] = {
    "corruption_invalid_json_read": "DELTA_MALFORMED_LOG_FILE",
    "corruption_invalid_json_snapshot": "DELTA_MALFORMED_LOG_FILE",
    # Only the commit lacks a schema, the version checksum beside it has one.
    "corruption_err_schema_empty_read": "DELTA_SCHEMA_NOT_SET",
    "corruption_err_schema_empty_snapshot": "DELTA_SCHEMA_NOT_SET",
    "corruption_missing_data_file_read": "DELTA_FILE_NOT_FOUND",
    "corruption_missing_file_read": "DELTA_FILE_NOT_FOUND",
    # The data file itself is broken: the error is the Parquet reader's.
    "corruption_parquet_read": Exception,
    "corruption_truncated_commit_read": "DELTA_MALFORMED_LOG_FILE",
    "corruption_truncated_commit_snapshot": "DELTA_MALFORMED_LOG_FILE",
    "corruption_zero_byte_commit_read": "DELTA_MALFORMED_LOG_FILE",
    "corruption_zero_byte_commit_snapshot": "DELTA_MALFORMED_LOG_FILE",
    "deletion_vectors_err_001_checksum_real_read": "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH",
    "deletion_vectors_err_004_wrong_cardinality_read": "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH",
    "reads_bad_version_read_v99": "DELTA_VERSION_NOT_FOUND",
}

# Types of specs that later issues take up.
# Gating specs and cases that fail today, with the reason. Each of them passing is a failure.
KNOWN_GAPS: Mapping[str, str] = {}

FILE_COUNTS = 368  # gating reads with a condition that say how many files delta-spark reads

# Reads for which more files are kept than by delta-spark, with the number and the reason.
_MAY_HOLD_NAN = (
    "a finite maximum does not prove that no row is NaN, which is greater than any number"
)
MORE_FILES: Mapping[str, tuple[int, str]] = {
    "column_mapping_mode_name_read_value_gt_150": (2, _MAY_HOLD_NAN),
    "data_skipping_numeric_types_read_d_gte_200": (2, _MAY_HOLD_NAN),
    "data_skipping_stats_after_drop_read_c4_gt_30": (2, _MAY_HOLD_NAN),
    "data_skipping_stats_after_drop_read_miss_c3": (2, _MAY_HOLD_NAN),
    "data_skipping_stats_after_rename_read_c4_gt_30": (2, _MAY_HOLD_NAN),
    "data_skipping_stats_after_rename_read_miss_c3": (2, _MAY_HOLD_NAN),
    "data_skipping_typed_stats_read_c4_gte_1000": (2, _MAY_HOLD_NAN),
    "data_skipping_typed_stats_read_miss_c3": (2, _MAY_HOLD_NAN),
    "reads_float_infinity_read_f_gt_0": (2, _MAY_HOLD_NAN),
    "write_basic_replace_table_as_select_read_high_score": (2, _MAY_HOLD_NAN),
}


class Named(Protocol):
    @property
    def id(self) -> str: ...


def parameters(items: Iterable[Named]) -> list[Any]:
    """Return pytest parameters by name, known gaps as strict expected failures."""
    return [pytest.param(item, id=item.id, marks=_marks(item.id)) for item in items]


def _marks(name: str) -> list[pytest.MarkDecorator]:
    if name not in KNOWN_GAPS:
        return []
    return [pytest.mark.xfail(reason=KNOWN_GAPS[name], strict=True)]


def spec_error(spec: Spec) -> str | type[Exception]:
    """Return the error that a failing spec has to end in."""
    assert spec.error is not None
    if spec.id in SPEC_ERROR_BY_ID:
        return SPEC_ERROR_BY_ID[spec.id]
    code: str = spec.error["errorCode"]
    return code if code in SPEC_ERRORS else DeltaError


def left_out(spec: Spec) -> str | None:
    """Return why a spec does not run, None for one that has to pass."""
    if not spec.table.gate:
        return f"behaviour of Spark alone: {spec.table.note}"
    return None

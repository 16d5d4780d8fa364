"""The exception hierarchy: one leaf class for each error condition, see `error_conditions`.

DeltaError
├── TableError
│   ├── TableNotFoundError (MissingReplacedTableError), NoCommitsFoundError
│   ├── VersionNotFoundError (RestoreVersionError), RestoredFilesError
│   ├── VacuumRetentionTooShortError, VacuumRetentionNegativeError, InvalidInventoryError
│   ├── TimestampEarlierThanCommitRetentionError (RestoreTimestampEarlierError)
│   ├── TimestampGreaterThanCommitError (RestoreTimestampGreaterError)
│   ├── InvalidTimestampError, InvalidArgumentError, ArgumentTypeError, UnknownArgumentError
│   ├── TimeTravelMultipleFormatsError, DeltaSparkPresentError
│   ├── StatementSyntaxError, StatementNotSupportedError, InsertArityError
│   ├── TableAlreadyExistsError, NonEmptyLocationError
│   ├── RenamePathError, SetLocationOfPathError, SetLocationSchemaError
│   ├── CreatedTableMismatchError
│   ├── CloneTargetNotEmptyError, CloneWithoutStatisticsError
│   ├── ConvertNonParquetError, MissingProviderError, EmptyDirectoryError, ConvertRowTrackingError
│   ├── UnknownConfigurationError (UnsupportedFeaturesInConfigError)
│   ├── UnsetPropertyError, AddConstraintsError
│   ├── ClusteringFeatureError, NewClusteringFeatureError, ClusterPartitionedTableError
│   ├── InvalidIdempotentWriteError
│   ├── ClusteredTablePredicateError, ClusteredTableZOrderError, OptimizeFullError
│   ├── DynamicReplaceWhereError, DynamicOverwriteSchemaError, DataChangeFalseError
│   ├── MissingStartOfChangesError, MultipleChangeBoundsError, InvalidChangeRangeError
│   ├── ChangesAfterLatestError, MissingChangeDataError, RemoveWithoutFileMetadataError
│   ├── UnsupportedOutputModeError, StreamNotSupportedError, StreamStartBoundsError
│   ├── SparkMemberNotFoundError, SparkMethodNotSupportedError
│   ├── InvalidExcludeRegexError, InvalidSourceOffsetError, InvalidSourceVersionError
│   ├── NewerSourceVersionError, DifferentStreamTableError, SplitChangesOffsetError
│   ├── StreamDeletesError, StreamUpdatesError
│   ├── MissingStreamCommitsError, MissingStreamEndError, MissingStreamSnapshotError
│   ├── StreamSchemaChangedError (StreamStartSchemaChangedError)
│   ├── StreamColumnsChangedError
│   └── IncompatibleChangeSchemaError (IncompatibleChangeDataError)
├── ProtocolError
│   ├── UnsupportedReaderFeaturesError, UnsupportedWriterFeaturesError, WriteNotImplementedError
│   ├── InvalidProtocolVersionError, InvalidProtocolError
│   ├── CatalogManagedTableError, UnsupportedTypeChangeError, ColumnMappingError
│   ├── ColumnMappingModeChangeError, RowTrackingCombinationError, UnsupportedFormatError
│   ├── ManifestVectorsError, ManifestOfVectorsError, ManifestMappingError, ManifestModeError
│   ├── UnknownFeatureDropError, FeatureNotPresentError, DropFeatureError, TruncateHistoryError
│   ├── ConstraintsOfFeatureError, DependentFeatureError, DropPropertyError
│   ├── CheckpointProtectionDropError, ProtectedHistoryError, DropWaitsForRetentionError
│   ├── HistoryUsesFeatureError, DropConflictError, DropCheckpointError
│   └── IcebergCompatError
├── SchemaError
│   ├── PartitionColumnCountError, PartitionColumnNameError, PartitionValueCastError
│   ├── FileSchemaMergeError
│   ├── SchemaNotSetError, InvalidSchemaError
│   ├── UnsupportedDataTypeError (NestedVoidError, EmptySchemaWriteError)
│   ├── ColumnNotFoundError (UnresolvedMergeExpressionError), PartitionColumnNotFoundError
│   ├── InvalidPartitionValueError
│   ├── DuplicateColumnsError, InvalidColumnNameError, InvalidNamesError
│   ├── ReservedColumnNameError
│   ├── InvalidPartitionColumnError (NoDataColumnError)
│   ├── NonPartitionColumnReferenceError, ZOrderingOnPartitionColumnError
│   ├── ShownPartitionTableError, ShownPartitionColumnError
│   ├── ZOrderingColumnNotFoundError, ZOrderingWithoutStatisticsError
│   ├── MetadataMismatchError, MergeFieldsError, GeneratedTypeError, NonBooleanConstraintError
│   ├── NondeterministicGeneratedColumnError, NondeterministicConstraintError
│   ├── UserFunctionInGeneratedColumnError, UserFunctionInConstraintError
│   ├── AggregateInGeneratedColumnError, AggregateInConstraintError
│   ├── UnsupportedGeneratedColumnError, UnsupportedConstraintError
│   ├── ConstraintDependentColumnError, GeneratedDependentColumnError, ChangeDataColumnsError
│   ├── UnsupportedRenameError, UnsupportedDropError, UnsupportedColumnChangeError
│   ├── DropPartitionColumnError, DropClusteringColumnError, DropOnlyColumnError
│   ├── AddColumnParentError, ConstraintExistsError, ConstraintNotFoundError, SyncIdentityError
│   ├── ReplaceColumnsError, ReplaceIdentityColumnsError
│   ├── MissingSetColumnError, ConflictingSetColumnsError, NonStructFieldUpdateError
│   ├── UpdateSchemaMismatchError, InvalidAssignmentError
│   ├── MissingMergeClauseError, NonLastMatchedClauseError, NonLastNotMatchedClauseError
│   ├── NonLastNotMatchedBySourceClauseError
│   ├── DuplicateInsertColumnsError, NestedInsertColumnError, MergeVoidColumnError
│   ├── InvalidConditionError
│   └── NondeterministicConditionError, SubqueryInConditionError, AggregateInConditionError
├── ConstraintError
│   ├── NotNullViolatedError, MissingNotNullColumnError
│   ├── ConstraintViolatedError, NewConstraintViolatedError, ReplaceWhereMismatchError
│   ├── CastOverflowError, InvalidCastInputError, TextTooLongError
│   └── IdentityInsertError, IdentityUpdateError
├── CommitError
│   ├── InvalidCommitError, NumRecordsMismatchError, AppendOnlyTableError
│   ├── MultipleSourceRowsError, MaxCommitRetriesExceededError
│   ├── CommitOutcomeUnknownError, WriteFailedError
│   └── DeltaConcurrentModificationException
│       ├── ConcurrentWriteException, ConcurrentTransactionException
│       ├── MetadataChangedException, ProtocolChangedException
│       ├── ConcurrentAppendException
│       └── ConcurrentDeleteReadException, ConcurrentDeleteDeleteException
├── PythonWorkerError
└── StorageError
    ├── VersionsNotContiguousError, TruncatedTransactionLogError, StateRecoverError
    ├── LogFileNotFoundError, MissingPartFilesError, MalformedLogFileError
    ├── MissingCommitInfoError, MissingCommitTimestampError, DriverReadTooLargeError
    ├── DataFileNotFoundError, DataFileNotReadError, DataFileUnsupportedError
    ├── FileFooterError, FileSystemNotFoundError, StoreNotWritableError, PathOutsideTableError
    ├── CheckpointMismatchError
    └── DeletionVectorError
        ├── DeletionVectorChecksumError, DeletionVectorCardinalityError
        ├── DeletionVectorSizeError, DeletionVectorFormatError
        └── DeletionVectorRowIndexError
"""

# ruff: noqa: D101, N802, N815, N818 - error texts describe leaves; names of PySpark, delta-spark

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, ClassVar

from sparkdelta.error_conditions import CONDITIONS

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:  # Python 3.10 has none, and type checkers alone need it

    def dataclass_transform(**_):  # noqa: D103
        return lambda cls: cls


class DeltaWarning(UserWarning):
    """A warning: the operation was done as requested, but probably not as intended."""


@dataclass_transform(kw_only_default=True, eq_default=False)
class DeltaError(Exception):
    """Base class of all errors of this library.

    Each subclass is a dataclass, whose fields are its message parameters.

    Attributes
    ----------
    error_class, sql_state
        Codes for use in programs, the same as in delta-spark where it has the same error.
    message
        Human-readable text, without error class and SQLSTATE.
    message_parameters
        The fields by name, as strings; each is also an attribute with its own type.
    """

    error_class: ClassVar[str] = "DELTA_ERROR"
    sql_state: ClassVar[str] = "XXKDS"
    message: str
    message_parameters: dict[str, str]

    def __init_subclass__(cls) -> None:
        cls.sql_state, _ = CONDITIONS.get(cls.error_class, (cls.sql_state, ""))
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    def __init__(self, message: str = "") -> None:
        _described(self, message, {})

    def __post_init__(self) -> None:
        fields = {name: getattr(self, name) for name in _field_names(type(self))}
        texts = {name: _text(value) for name, value in fields.items()}
        _described(self, CONDITIONS[self.error_class][1].format(**texts), fields)

    def __str__(self) -> str:
        return f"[{self.error_class}] {self.message} SQLSTATE: {self.sql_state}"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {name: getattr(self, name, None) for name in self.message_parameters}
        return _restore, (type(self), self.message, fields)

    def getCondition(self) -> str:
        """Return the error class, as PySpark's errors do."""
        return self.error_class

    getErrorClass = getCondition

    def getSqlState(self) -> str:
        return self.sql_state

    def getMessageParameters(self) -> dict[str, str]:
        return self.message_parameters


def from_message(text: str) -> DeltaError | None:
    """Return the error found in an error message of Spark; its fields are None.

    The fields cannot be recovered from the text. Returns None if there is no such error.
    """
    classes = {cls.error_class: cls for cls in _tree(DeltaError)}
    for found in _ERROR_TEXT.finditer(text):
        if leaf := classes.get(found["error_class"]):
            error = _restore(leaf, found["message"], {})
            error.__dict__.update(dict.fromkeys(_field_names(leaf)))
            return error
    return None


_SHOWN_NAMES = 5
_ERROR_TEXT = re.compile(
    r"\[(?P<error_class>(?:DIFFERENT_)?DELTA_[A-Z0-9_]+)\] "
    r"(?P<message>[^\n]*?)(?= SQLSTATE: \w{5}|\n|$)"
)


def _tree(root: type[DeltaError]) -> list[type[DeltaError]]:
    return [root, *(cls for child in root.__subclasses__() for cls in _tree(child))]


def _field_names(leaf: type[DeltaError]) -> list[str]:
    return [n for n, p in inspect.signature(leaf).parameters.items() if p.kind is p.KEYWORD_ONLY]


def _restore(leaf: type[DeltaError], message: str, fields: dict[str, object]) -> DeltaError:
    return _described(leaf.__new__(leaf), message, fields)


def _described(error: DeltaError, message: str, fields: Mapping[str, object]) -> DeltaError:
    """Give an error its message and fields, and return it."""
    Exception.__init__(error, message)
    error.message = message
    error.message_parameters = {name: _text(value) for name, value in fields.items()}
    error.__dict__.update(fields)
    return error


def _text(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(map(str, value))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return str(value)


def _nearest(name: str, names: object) -> str:
    """The names that are most similar to a given one, as text."""
    if not isinstance(names, Sequence) or isinstance(names, str):
        return _text(names)

    def similarity(other: str) -> float:
        return SequenceMatcher(None, name.casefold(), str(other).casefold()).ratio()

    return ", ".join(map(str, sorted(names, key=similarity, reverse=True)[:_SHOWN_NAMES]))


class TableError(DeltaError):
    """The table, version or timestamp does not exist, or an argument is invalid."""

    error_class = "DELTA_TABLE_ERROR"


class TableNotFoundError(TableError):
    path: str
    advice: str = "it has no _delta_log directory with commits or checkpoints. Check the path"
    error_class = "DELTA_TABLE_NOT_FOUND"


class VersionNotFoundError(TableError):
    version: int
    earliest: int
    latest: int
    path: str
    error_class = "DELTA_VERSION_NOT_FOUND"


class TimestampEarlierThanCommitRetentionError(TableError):
    timestamp: object
    earliest: object
    path: str
    error_class = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"


class NoCommitsFoundError(TableError):
    path: str
    error_class = "DELTA_NO_COMMITS_FOUND"


class TimestampGreaterThanCommitError(TableError):
    timestamp: object
    latest: object
    path: str
    error_class = "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


class RestoreVersionError(VersionNotFoundError):
    error_class = "DELTA_CANNOT_RESTORE_TABLE_VERSION"


class RestoreTimestampEarlierError(TimestampEarlierThanCommitRetentionError):
    error_class = "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"


class RestoreTimestampGreaterError(TimestampGreaterThanCommitError):
    error_class = "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"


class RestoredFilesError(TableError):
    """Files of the version to restore are missing or damaged."""

    path: str
    version: int
    problems: Sequence[str]
    error_class = "DELTA_CANNOT_RESTORE_FILES"


class VacuumRetentionTooShortError(TableError):
    path: str
    hours: float
    least_hours: int
    error_class = "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"


class VacuumRetentionNegativeError(TableError):
    path: str
    hours: float
    error_class = "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"


class InvalidInventoryError(TableError):
    problem: str
    error_class = "DELTA_INVALID_INVENTORY_SCHEMA"


class InvalidTimestampError(TableError):
    value: object
    error_class = "DELTA_TIMESTAMP_INVALID"


class InvalidArgumentError(TableError, ValueError):
    argument: str
    problem: str
    error_class = "DELTA_ILLEGAL_OPTION"


class ArgumentTypeError(TableError, TypeError):
    argument: str
    problem: str
    error_class = "DELTA_INVALID_ARGUMENT_TYPE"


class UnknownArgumentError(TableError, TypeError):
    function: str
    argument: str
    suggestion: str
    error_class = "DELTA_UNKNOWN_ARGUMENT"


class TimeTravelMultipleFormatsError(TableError):
    error_class = "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"


class StatementSyntaxError(TableError):
    """A SQL statement is not understood; `excerpt` shows the place."""

    problem: str
    line: int
    column: int
    excerpt: str
    error_class = "DELTA_STATEMENT_SYNTAX"


class StatementNotSupportedError(TableError):
    statement: str
    error_class = "DELTA_STATEMENT_NOT_SUPPORTED"


class InsertArityError(TableError):
    path: str
    expected: int
    given: int
    error_class = "DELTA_INSERT_COLUMN_ARITY_MISMATCH"


class DeltaSparkPresentError(TableError):
    error_class = "DELTA_SPARK_PRESENT"


class TableAlreadyExistsError(TableError):
    path: str
    error_class = "DELTA_TABLE_ALREADY_EXISTS"


class MissingReplacedTableError(TableNotFoundError):
    error_class = "DELTA_CANNOT_REPLACE_MISSING_TABLE"


class NonEmptyLocationError(TableError):
    path: str
    error_class = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"


class RenamePathError(TableError):
    path: str
    error_class = "DELTA_CANNOT_RENAME_PATH"


class SetLocationOfPathError(TableError):
    path: str
    error_class = "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER"


class CreatedTableMismatchError(TableError):
    """CREATE TABLE describes another table than the one that its location has."""

    path: str
    differences: Sequence[str]
    error_class = "DELTA_CREATE_TABLE_SCHEME_MISMATCH"


class SetLocationSchemaError(TableError):
    path: str
    location: str
    error_class = "DELTA_SET_LOCATION_SCHEMA_MISMATCH"


class CloneTargetNotEmptyError(TableError):
    path: str
    error_class = "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"


class CloneWithoutStatisticsError(TableError):
    path: str
    file: str
    error_class = "DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS"


class ConvertNonParquetError(TableError):
    source: str
    table: str
    error_class = "DELTA_CONVERT_NON_PARQUET_TABLE"


class MissingProviderError(TableError):
    identifier: str
    error_class = "DELTA_MISSING_PROVIDER_FOR_CONVERT"


class EmptyDirectoryError(TableError):
    directory: str
    error_class = "DELTA_EMPTY_DIRECTORY"


class ConvertRowTrackingError(TableError):
    path: str
    error_class = "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS"


class UnknownConfigurationError(TableError):
    property: str
    suggestion: str
    error_class = "DELTA_UNKNOWN_CONFIGURATION"


class UnsupportedFeaturesInConfigError(UnknownConfigurationError):
    error_class = "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"


class UnsetPropertyError(TableError):
    property: str
    path: str
    error_class = "DELTA_UNSET_NON_EXISTENT_PROPERTY"


class AddConstraintsError(TableError):
    name: str
    error_class = "DELTA_ADD_CONSTRAINTS"


class ClusteringFeatureError(TableError):
    path: str
    error_class = "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"


class NewClusteringFeatureError(TableError):
    property: str
    error_class = "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"


class ClusterPartitionedTableError(TableError):
    path: str
    columns: tuple[str, ...]
    error_class = "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"


class InvalidIdempotentWriteError(TableError):
    problem: str
    error_class = "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"


class DynamicReplaceWhereError(TableError):
    error_class = "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE"


class DynamicOverwriteSchemaError(TableError):
    error_class = "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE"


class DataChangeFalseError(TableError):
    path: str
    what: str
    error_class = "DELTA_DATA_CHANGE_FALSE"


class MissingStartOfChangesError(TableError):
    error_class = "DELTA_NO_START_FOR_CDC_READ"


class MultipleChangeBoundsError(TableError):
    bound: str
    error_class = "DELTA_MULTIPLE_CDC_BOUNDARY"


class InvalidChangeRangeError(TableError):
    path: str
    start: int
    end: int
    error_class = "DELTA_INVALID_CDC_RANGE"


class ChangesAfterLatestError(TableError):
    path: str
    start: int
    latest: int
    error_class = "DELTA_CDC_START_VERSION_AFTER_LATEST"


class MissingChangeDataError(TableError):
    path: str
    start: int
    end: int
    version: int
    error_class = "DELTA_MISSING_CHANGE_DATA"


class IncompatibleChangeSchemaError(TableError):
    path: str
    start: int
    end: int
    version: int
    schema_version: int
    error_class = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"


class IncompatibleChangeDataError(IncompatibleChangeSchemaError):
    error_class = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"


class RemoveWithoutFileMetadataError(TableError):
    path: str
    error_class = "DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA"


class UnsupportedOutputModeError(TableError):
    mode: str
    error_class = "DELTA_UNSUPPORTED_OUTPUT_MODE"


class StreamNotSupportedError(TableError):
    verb: str
    reason: str
    error_class = "DELTA_STREAM_NOT_SUPPORTED"


class SparkMemberNotFoundError(TableError):
    member: str
    version: str
    purpose: str
    error_class = "DELTA_SPARK_MEMBER_NOT_FOUND"


class SparkMethodNotSupportedError(TableError):
    method: str
    version: str
    error_class = "DELTA_SPARK_METHOD_NOT_SUPPORTED"


class StreamStartBoundsError(TableError):
    error_class = "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"


class InvalidExcludeRegexError(TableError):
    regex: str
    error_class = "DELTA_REGEX_OPT_SYNTAX_ERROR"


class InvalidSourceOffsetError(TableError):
    path: str
    offset: str
    error_class = "DELTA_INVALID_SOURCE_OFFSET_FORMAT"


class InvalidSourceVersionError(TableError):
    path: str
    version: int
    error_class = "DELTA_INVALID_SOURCE_VERSION"


class NewerSourceVersionError(TableError):
    path: str
    version: int
    error_class = "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"


class DifferentStreamTableError(TableError):
    path: str
    old: str
    new: str
    error_class = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


class SplitChangesOffsetError(TableError):
    path: str
    version: int
    error_class = "DELTA_STREAM_OFFSET_WITHIN_CHANGES"


class StreamDeletesError(TableError):
    path: str
    version: int
    file: str
    error_class = "DELTA_SOURCE_IGNORE_DELETE"


class StreamUpdatesError(TableError):
    path: str
    version: int
    file: str
    error_class = "DELTA_SOURCE_TABLE_IGNORE_CHANGES"


class MissingStreamCommitsError(TableError):
    path: str
    version: int
    earliest: int
    error_class = "DELTA_MISSING_FILES_UNEXPECTED_VERSION"


class MissingStreamEndError(TableError):
    path: str
    version: int
    latest: int | None
    error_class = "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


class MissingStreamSnapshotError(TableError):
    path: str
    version: int
    error_class = "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"


class StreamSchemaChangedError(TableError):
    path: str
    version: int
    read_version: int
    old: str
    new: str
    error_class = "DELTA_SCHEMA_CHANGED_WITH_VERSION"


class StreamStartSchemaChangedError(StreamSchemaChangedError):
    error_class = "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"


class StreamColumnsChangedError(TableError):
    path: str
    version: int
    read_version: int
    old: str
    new: str
    error_class = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"


class ProtocolError(DeltaError):
    """The table requires something not implemented here, or violates the protocol."""

    error_class = "DELTA_PROTOCOL_ERROR"


class UnsupportedReaderFeaturesError(ProtocolError):
    path: str
    features: Sequence[str]
    error_class = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"


class UnsupportedWriterFeaturesError(ProtocolError):
    path: str
    features: Sequence[str]
    what: str
    reasons: str
    error_class = "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


class WriteNotImplementedError(ProtocolError):
    path: str
    missing: Sequence[str]
    error_class = "DELTA_WRITE_NOT_IMPLEMENTED"


class InvalidProtocolVersionError(ProtocolError):
    path: str
    reader_version: int
    writer_version: int
    error_class = "DELTA_INVALID_PROTOCOL_VERSION"


class InvalidProtocolError(ProtocolError):
    path: str
    problem: str
    error_class = "DELTA_INVALID_PROTOCOL"


class CatalogManagedTableError(ProtocolError):
    path: str
    error_class = "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"


class UnsupportedFormatError(ProtocolError):
    path: str
    provider: str
    error_class = "DELTA_UNSUPPORTED_FORMAT"


class UnsupportedTypeChangeError(ProtocolError):
    field: str
    from_type: str
    to_type: str
    error_class = "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA"


class ColumnMappingError(ProtocolError):
    problem: str
    error_class = "DELTA_INVALID_COLUMN_MAPPING"


class ColumnMappingModeChangeError(ProtocolError):
    before: str
    after: str
    error_class = "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"


class ManifestVectorsError(ProtocolError):
    error_class = "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"


class ManifestOfVectorsError(ProtocolError):
    path: str
    error_class = "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"


class ManifestMappingError(ProtocolError):
    path: str
    error_class = "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"


class ManifestModeError(ProtocolError):
    mode: str
    error_class = "DELTA_MODE_NOT_SUPPORTED"


class RowTrackingCombinationError(ProtocolError):
    enabled: str
    suspended: str
    error_class = "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION"


class UnknownFeatureDropError(ProtocolError):
    feature: str
    error_class = "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"


class FeatureNotPresentError(ProtocolError):
    feature: str
    path: str
    error_class = "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"


class DropFeatureError(ProtocolError):
    feature: str
    droppable: tuple[str, ...]
    error_class = "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"


class TruncateHistoryError(ProtocolError):
    feature: str
    error_class = "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"


class DropPropertyError(ProtocolError):
    property: str
    error_class = "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY"


class DependentFeatureError(ProtocolError):
    feature: str
    dependents: tuple[str, ...]
    error_class = "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"


class CheckpointProtectionDropError(ProtocolError):
    path: str
    error_class = "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"


class ProtectedHistoryError(ProtocolError):
    path: str
    version: int
    retention: str
    error_class = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"


class DropWaitsForRetentionError(ProtocolError):
    feature: str
    path: str
    retention: str
    short_retention: str
    error_class = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"


class HistoryUsesFeatureError(ProtocolError):
    feature: str
    path: str
    retention: str
    short_retention: str
    error_class = "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"


class DropConflictError(ProtocolError):
    feature: str
    path: str
    error_class = "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"


class DropCheckpointError(ProtocolError):
    feature: str
    path: str
    problem: str
    error_class = "DELTA_FEATURE_DROP_CHECKPOINT_FAILED"


class ConstraintsOfFeatureError(ProtocolError):
    constraints: tuple[str, ...]
    error_class = "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"


class IcebergCompatError(ProtocolError):
    version: int
    violation: str
    problem: str
    error_class = "DELTA_ICEBERG_COMPAT_VIOLATION"


class SchemaError(DeltaError):
    """Columns, types or expressions are invalid or do not match the table's schema."""

    error_class = "DELTA_SCHEMA_ERROR"


class SchemaNotSetError(SchemaError):
    path: str
    error_class = "DELTA_SCHEMA_NOT_SET"


class PartitionColumnCountError(SchemaError):
    path: str
    expected: str
    found: str
    error_class = "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"


class PartitionColumnNameError(SchemaError):
    path: str
    expected: str
    found: str
    error_class = "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"


class PartitionValueCastError(SchemaError):
    column: str
    value: str
    data_type: str
    error_class = "DELTA_FAILED_CAST_PARTITION_VALUE"


class FileSchemaMergeError(SchemaError):
    file: str
    problem: str
    error_class = "DELTA_FAILED_MERGE_SCHEMA_FILE"


class InvalidSchemaError(SchemaError):
    problem: str
    error_class = "DELTA_INVALID_SCHEMA"


class UnsupportedDataTypeError(SchemaError):
    column: str
    data_type: str
    error_class = "DELTA_UNSUPPORTED_DATA_TYPES"


class NestedVoidError(UnsupportedDataTypeError):
    error_class = "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"


class EmptySchemaWriteError(UnsupportedDataTypeError):
    error_class = "DELTA_CANNOT_WRITE_EMPTY_SCHEMA"


class NonPartitionColumnReferenceError(SchemaError):
    column: str
    path: str
    available: Sequence[str]
    error_class = "DELTA_NON_PARTITION_COLUMN_REFERENCE"


class ShownPartitionTableError(SchemaError):
    path: str
    error_class = "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE"


class ShownPartitionColumnError(SchemaError):
    column: str
    path: str
    available: Sequence[str]
    error_class = "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN"


class ZOrderingOnPartitionColumnError(SchemaError):
    column: str
    error_class = "DELTA_ZORDERING_ON_PARTITION_COLUMN"


class ZOrderingColumnNotFoundError(SchemaError):
    column: str
    available: Sequence[str]
    error_class = "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"


class ZOrderingWithoutStatisticsError(SchemaError):
    columns: Sequence[str]
    error_class = "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"


class ClusteredTablePredicateError(TableError):
    path: str
    error_class = "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"


class ClusteredTableZOrderError(TableError):
    path: str
    columns: Sequence[str]
    error_class = "DELTA_CLUSTERING_WITH_ZORDER_BY"


class OptimizeFullError(TableError):
    path: str
    error_class = "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"


class ColumnNotFoundError(SchemaError):
    column: str
    available: Sequence[str]
    error_class = "DELTA_COLUMN_NOT_FOUND"

    def __post_init__(self) -> None:
        fields = {name: getattr(self, name) for name in _field_names(type(self))}
        nearest = {"available": _nearest(str(self.column), self.available)}
        text = CONDITIONS[self.error_class][1].format(**fields | nearest)
        _described(self, text, fields)


class UnresolvedMergeExpressionError(ColumnNotFoundError):
    """A part of a MERGE names a column that it cannot use.

    Attributes
    ----------
    clause
        The part, such as ``WHEN MATCHED UPDATE``.
    available
        The columns that it can use.
    """

    clause: str
    error_class = "DELTA_MERGE_UNRESOLVED_EXPRESSION"


class PartitionColumnNotFoundError(SchemaError):
    column: str
    available: Sequence[str]
    error_class = "DELTA_PARTITION_COLUMN_NOT_FOUND"


class InvalidPartitionValueError(SchemaError):
    column: str
    value: object
    data_type: str
    error_class = "DELTA_PARTITION_COLUMN_CAST_FAILED"


class DuplicateColumnsError(SchemaError):
    columns: Sequence[str]
    error_class = "DELTA_DUPLICATE_COLUMNS_FOUND"


class InvalidColumnNameError(SchemaError):
    column: str
    error_class = "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"


class ReservedColumnNameError(SchemaError):
    column: str
    prefix: str
    error_class = "DELTA_RESERVED_COLUMN_NAME"


class InvalidNamesError(SchemaError):
    column: str
    path: str
    error_class = "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"


class InvalidPartitionColumnError(SchemaError):
    column: str
    problem: str
    error_class = "DELTA_INVALID_PARTITION_COLUMN"


class NoDataColumnError(InvalidPartitionColumnError):
    error_class = "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"


class MetadataMismatchError(SchemaError):
    path: str
    problem: str
    error_class = "DELTA_METADATA_MISMATCH"


class MergeFieldsError(SchemaError):
    column: str
    table_type: str
    row_type: str
    error_class = "DELTA_FAILED_TO_MERGE_FIELDS"


class NondeterministicGeneratedColumnError(SchemaError):
    name: str
    expression: str
    error_class = "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"


class NondeterministicConstraintError(SchemaError):
    name: str
    expression: str
    error_class = "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT"


class UserFunctionInGeneratedColumnError(SchemaError):
    name: str
    expression: str
    error_class = "DELTA_UDF_IN_GENERATED_COLUMN"


class UserFunctionInConstraintError(SchemaError):
    name: str
    expression: str
    error_class = "DELTA_UDF_IN_CHECK_CONSTRAINT"


class AggregateInGeneratedColumnError(SchemaError):
    name: str
    expression: str
    error_class = "DELTA_AGGREGATE_IN_GENERATED_COLUMN"


class AggregateInConstraintError(SchemaError):
    name: str
    expression: str
    error_class = "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT"


class UnsupportedGeneratedColumnError(SchemaError):
    name: str
    expression: str
    error_class = "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"


class NonBooleanConstraintError(SchemaError):
    name: str
    expression: str
    data_type: str
    error_class = "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"


class GeneratedTypeError(SchemaError):
    column: str
    column_type: str
    expression_type: str
    error_class = "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"


class UnsupportedConstraintError(SchemaError):
    name: str
    expression: str
    error_class = "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"


class ConstraintDependentColumnError(SchemaError):
    name: str
    expression: str
    problem: str
    error_class = "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"


class GeneratedDependentColumnError(SchemaError):
    column: str
    name: str
    expression: str
    error_class = "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"


class UnsupportedRenameError(SchemaError):
    path: str
    error_class = "DELTA_UNSUPPORTED_RENAME_COLUMN"


class UnsupportedDropError(SchemaError):
    path: str
    error_class = "DELTA_UNSUPPORTED_DROP_COLUMN"


class UnsupportedColumnChangeError(SchemaError):
    column: str
    before: str
    after: str
    problem: str
    error_class = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"


class ReplaceColumnsError(SchemaError):
    problem: str
    error_class = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"


class DropPartitionColumnError(SchemaError):
    column: str
    error_class = "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"


class DropClusteringColumnError(SchemaError):
    column: str
    error_class = "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"


class DropOnlyColumnError(SchemaError):
    column: str
    error_class = "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"


class AddColumnParentError(SchemaError):
    column: str
    data_type: str
    error_class = "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"


class ConstraintExistsError(SchemaError):
    name: str
    expression: str
    error_class = "DELTA_CONSTRAINT_ALREADY_EXISTS"


class ConstraintNotFoundError(SchemaError):
    name: str
    path: str
    error_class = "DELTA_CONSTRAINT_DOES_NOT_EXIST"


class ChangeDataColumnsError(SchemaError):
    columns: tuple[str, ...]
    error_class = "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"


class MissingSetColumnError(SchemaError):
    column: str
    available: Sequence[str]
    error_class = "DELTA_MISSING_SET_COLUMN"


class ConflictingSetColumnsError(SchemaError):
    columns: Sequence[str]
    error_class = "DELTA_CONFLICT_SET_COLUMN"


class NonStructFieldUpdateError(SchemaError):
    column: str
    data_type: str
    error_class = "DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT"


class UpdateSchemaMismatchError(SchemaError):
    column: str
    column_type: str
    value_type: str
    error_class = "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"


class InvalidAssignmentError(SchemaError):
    """Spark does not take an expression for the value of a column.

    Attributes
    ----------
    spark_condition
        Spark's own name of the error, such as ``PARSE_SYNTAX_ERROR``.
    """

    column: str
    expression: str
    problem: str
    spark_condition: str
    error_class = "DELTA_INVALID_ASSIGNMENT"


class MissingMergeClauseError(SchemaError):
    path: str
    error_class = "DELTA_MERGE_MISSING_WHEN"


class NonLastMatchedClauseError(SchemaError):
    number: int
    error_class = "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"


class NonLastNotMatchedClauseError(SchemaError):
    number: int
    error_class = "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION"


class NonLastNotMatchedBySourceClauseError(SchemaError):
    number: int
    error_class = "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION"


class DuplicateInsertColumnsError(SchemaError):
    columns: Sequence[str]
    error_class = "DELTA_DUPLICATE_COLUMNS_ON_INSERT"


class NestedInsertColumnError(SchemaError):
    column: str
    error_class = "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION"


class MergeVoidColumnError(SchemaError):
    column: str
    error_class = "DELTA_MERGE_ADD_VOID_COLUMN"


class NondeterministicConditionError(SchemaError):
    operation: str
    condition: str
    error_class = "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"


class SubqueryInConditionError(SchemaError):
    operation: str
    condition: str
    error_class = "DELTA_UNSUPPORTED_SUBQUERY"


class InvalidConditionError(SchemaError):
    """Spark does not take a text or Column for a condition on the table's columns.

    Attributes
    ----------
    spark_condition
        Spark's own name of the error, such as ``PARSE_SYNTAX_ERROR``.
    """

    condition: str
    problem: str
    spark_condition: str
    error_class = "DELTA_INVALID_CONDITION"


class AggregateInConditionError(SchemaError):
    operation: str
    condition: str
    error_class = "DELTA_AGGREGATION_NOT_SUPPORTED"


class ConstraintError(DeltaError):
    """A row violates a constraint of the table or of the write; nothing was committed."""

    error_class = "DELTA_CONSTRAINT_ERROR"


class NotNullViolatedError(ConstraintError):
    column: str
    error_class = "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"


class MissingNotNullColumnError(ConstraintError):
    columns: Sequence[str]
    error_class = "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"


class ConstraintViolatedError(ConstraintError):
    constraint: str
    expression: str
    row: str
    error_class = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


class NewConstraintViolatedError(ConstraintError):
    path: str
    expression: str
    num_rows: int
    rows: tuple[str, ...]
    error_class = "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"


class CastOverflowError(ConstraintError):
    column: str
    row_type: str
    table_type: str
    error_class = "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"


class InvalidCastInputError(ConstraintError):
    column: str
    row_type: str
    table_type: str
    error_class = "DELTA_CAST_INVALID_INPUT"


class TextTooLongError(ConstraintError):
    column: str
    data_type: str
    error_class = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"


class IdentityInsertError(ConstraintError):
    column: str
    error_class = "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"


class SyncIdentityError(SchemaError):
    column: str
    error_class = "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"


class ReplaceIdentityColumnsError(SchemaError):
    path: str
    error_class = "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED"


class IdentityUpdateError(ConstraintError):
    column: str
    error_class = "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"


class ReplaceWhereMismatchError(ConstraintError):
    where: object
    error_class = "DELTA_REPLACE_WHERE_MISMATCH"


class CommitError(DeltaError):
    """A commit failed; `CommitOutcomeUnknownError` is the only one that may have committed."""

    error_class = "DELTA_COMMIT_ERROR"


class InvalidCommitError(CommitError):
    path: str
    problem: str
    error_class = "DELTA_INVALID_COMMIT"


class NumRecordsMismatchError(CommitError):
    """An operation wrote another number of rows than it found."""

    path: str
    operation: str
    expected: int | None
    found: int
    error_class = "DELTA_NUM_RECORDS_MISMATCH"


class MultipleSourceRowsError(CommitError):
    """Several rows of a MERGE's source match the same row of the table.

    Attributes
    ----------
    num_rows
        The rows of the table that several match.
    keys
        The values that some of them are matched by.
    """

    path: str
    num_rows: int
    keys: Sequence[str]
    error_class = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


class AppendOnlyTableError(CommitError):
    path: str
    error_class = "DELTA_CANNOT_MODIFY_APPEND_ONLY"


class MaxCommitRetriesExceededError(CommitError):
    path: str
    attempts: int
    version: int
    error_class = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"


class CommitOutcomeUnknownError(CommitError):
    path: str
    version: int
    txn_id: str
    problem: str
    error_class = "DELTA_COMMIT_OUTCOME_UNKNOWN"


class WriteFailedError(CommitError):
    path: str
    problem: str
    remedy: str
    error_class = "DELTA_WRITE_FAILED"


class DeltaConcurrentModificationException(CommitError):
    """A concurrent commit conflicts with this one; base class of all conflict errors."""

    path: str
    version: int
    operation: str
    conflict: str
    subject: str
    error_class = "DELTA_CONCURRENT_MODIFICATION"


class ConcurrentWriteException(DeltaConcurrentModificationException):
    error_class = "DELTA_CONCURRENT_WRITE"


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    error_class = "DELTA_CONCURRENT_TRANSACTION"


class MetadataChangedException(DeltaConcurrentModificationException):
    error_class = "DELTA_METADATA_CHANGED"


class ProtocolChangedException(DeltaConcurrentModificationException):
    error_class = "DELTA_PROTOCOL_CHANGED"


class ConcurrentAppendException(DeltaConcurrentModificationException):
    error_class = "DELTA_CONCURRENT_APPEND"


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    error_class = "DELTA_CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    error_class = "DELTA_CONCURRENT_DELETE_DELETE"


class PythonWorkerError(DeltaError):
    problem: str
    error_class = "DELTA_PYTHON_WORKER_NOT_USABLE"


class StorageError(DeltaError):
    """The log, a data file or a deletion vector is missing, damaged or inaccessible."""

    error_class = "DELTA_STORAGE_ERROR"

    def __init__(self, *, path: str, problem: str) -> None:
        text = CONDITIONS[StorageError.error_class][1].format(path=path, problem=problem)
        _described(self, text, {"path": path, "problem": problem})


class VersionsNotContiguousError(StorageError):
    versions: Sequence[int]
    start: int
    end: int
    version_to_load: int
    path: str
    error_class = "DELTA_VERSIONS_NOT_CONTIGUOUS"


class TruncatedTransactionLogError(StorageError):
    path: str
    version: int
    error_class = "DELTA_TRUNCATED_TRANSACTION_LOG"


class LogFileNotFoundError(StorageError):
    path: str
    version: int | None
    file: str
    error_class = "DELTA_LOG_FILE_NOT_FOUND"


class MissingPartFilesError(StorageError):
    version: int
    error_class = "DELTA_MISSING_PART_FILES"


class StateRecoverError(StorageError):
    what: str
    version: int
    path: str
    error_class = "DELTA_STATE_RECOVER_ERROR"


class MalformedLogFileError(StorageError):
    path: str
    version: int | None
    problem: str
    error_class = "DELTA_MALFORMED_LOG_FILE"


class MissingCommitInfoError(StorageError):
    version: int
    path: str
    error_class = "DELTA_MISSING_COMMIT_INFO"


class MissingCommitTimestampError(StorageError):
    version: int
    path: str
    error_class = "DELTA_MISSING_COMMIT_TIMESTAMP"


class DataFileNotFoundError(StorageError):
    file: str
    version: int | None
    error_class = "DELTA_FILE_NOT_FOUND"


class DataFileNotReadError(StorageError):
    files: Sequence[str]
    version: int | None
    error_class = "DELTA_DATA_FILE_NOT_READ"


class DataFileUnsupportedError(StorageError):
    file: str
    column: str
    problem: str
    error_class = "DELTA_DATA_FILE_UNSUPPORTED"


class FileFooterError(StorageError):
    path: str
    problem: str
    error_class = "DELTA_FAILED_READ_FILE_FOOTER"


class FileSystemNotFoundError(StorageError):
    path: str
    scheme: str
    remedy: str
    error_class = "DELTA_FILE_SYSTEM_NOT_FOUND"


class StoreNotWritableError(StorageError):
    path: str
    reason: str
    remedy: str
    error_class = "DELTA_STORE_NOT_WRITABLE"


class PathOutsideTableError(StorageError):
    path: str
    table_root: str
    error_class = "DELTA_PATH_OUTSIDE_TABLE"


class CheckpointMismatchError(StorageError):
    path: str
    version: int
    what: str
    expected: int
    found: int
    error_class = "DELTA_CHECKPOINT_SNAPSHOT_MISMATCH"


class DeletionVectorError(StorageError):
    """A deletion vector is damaged or does not match its descriptor."""

    deletion_vector: str
    problem: str
    error_class = "DELTA_DELETION_VECTOR_ERROR"


class DeletionVectorChecksumError(DeletionVectorError):
    error_class = "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"


class DeletionVectorCardinalityError(DeletionVectorError):
    error_class = "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"


class DeletionVectorSizeError(DeletionVectorError):
    error_class = "DELTA_DELETION_VECTOR_SIZE_MISMATCH"


class DeletionVectorFormatError(DeletionVectorError):
    error_class = "DELTA_DELETION_VECTOR_INVALID_FORMAT"


class DeletionVectorRowIndexError(StorageError):
    file: str
    row_index: int
    num_records: int
    error_class = "DELTA_DELETION_VECTOR_INVALID_ROW_INDEX"


class DriverReadTooLargeError(StorageError):
    what: str
    rows: int | None
    bound: int
    error_class = "DELTA_DRIVER_READ_TOO_LARGE"

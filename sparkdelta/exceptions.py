"""The exceptions: classes for those who catch errors, see `error_conditions` for the conditions.

Most conditions have no class of their own: they are raised as the class of their group, by
`DeltaError.of`, and `DeltaError.error_class` names the condition. Each error is also an instance of
the exceptions of PySpark that delta-spark raises in the same situation, such as
`AnalysisException`, by a subclass that `_raised_class` makes.

DeltaError
├── TableError
│   ├── TableNotFoundError, VersionNotFoundError
│   ├── TimestampEarlierThanCommitRetentionError, TimestampGreaterThanCommitError
│   ├── InvalidArgumentError, ArgumentTypeError, StatementSyntaxError
│   └── SparkMemberNotFoundError, MissingStreamSnapshotError
├── ProtocolError
├── SchemaError
│   ├── ColumnNotFoundError, NonPartitionColumnReferenceError
│   ├── InvalidPartitionValueError, InvalidColumnNameError
│   └── UnsupportedColumnChangeError, InvalidConditionError
├── ConstraintError
├── CommitError
│   ├── MaxCommitRetriesExceededError, CommitOutcomeUnknownError
│   └── DeltaConcurrentModificationException
│       ├── ConcurrentWriteException, ConcurrentTransactionException
│       ├── MetadataChangedException, ProtocolChangedException
│       ├── ConcurrentAppendException
│       └── ConcurrentDeleteReadException, ConcurrentDeleteDeleteException
└── StorageError
    ├── VersionsNotContiguousError, TruncatedTransactionLogError
    ├── LogFileNotFoundError, MalformedLogFileError, CheckpointMismatchError
    ├── DriverReadTooLargeError, StoreNotWritableError
    └── DeletionVectorError
"""

# ruff: noqa: D101, N802, N815, N818 - error texts describe leaves; names of PySpark, delta-spark

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from types import new_class
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import errors
from pyspark.errors import PySparkException

from sparkdelta.error_conditions import CONDITIONS, text_of

if TYPE_CHECKING:  # workers, which get the code of errors, have no need of delta-spark's names
    from sparkdelta.error_names import ErrorNames

Error = TypeVar("Error", bound="DeltaError")


class DeltaWarning(UserWarning):
    """A warning: the operation was done as requested, but probably not as intended."""


class DeltaError(PySparkException):
    """Base class of all errors of this library.

    Attributes
    ----------
    error_class, sql_state
        Codes for use in programs, the same as in delta-spark where it has the same error.
    message
        Human-readable text, without error class and SQLSTATE.
    message_parameters
        The fields by name, as strings; each is also an attribute with its own type.

    In enabled sessions, `getCondition`, `getSqlState` and `getMessageParameters` return what
    delta-spark's error has; see `error_names`.
    """

    error_class = "DELTA_ERROR"
    sql_state = "XXKDS"
    message: str
    message_parameters: dict[str, str]
    _special_names: ErrorNames | tuple[str, dict[str, str | Sequence[str]]] | None = None
    _names: ErrorNames | None = None

    if TYPE_CHECKING:  # the fields of the condition

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls) -> None:
        if condition := CONDITIONS.get(cls.error_class):
            cls.sql_state = condition.sql_state

    def __new__(cls, *_args: object, **_fields: object) -> DeltaError:
        return _new(cls, cls.error_class)

    def __init__(self, message: str = "", /, **fields: Any) -> None:
        if condition := CONDITIONS.get(self.error_class):
            if fields.keys() != set(condition.fields):
                raise TypeError(f"{self.error_class} has the fields {condition.fields}: {fields}")
            message = condition.text.format(**self._texts(fields))
        self.args = (message,)
        self.__dict__.update(_attributes(self.error_class, message, fields))

    @staticmethod
    def of(error_class: str, /, **fields: Any) -> DeltaError:
        """Return the error of a condition, of the class that its entry names."""
        error = _new(_class_of(error_class), error_class)
        error.error_class = error_class
        DeltaError.__init__(error, **fields)
        return error

    def _fields(self) -> dict[str, object]:
        condition = CONDITIONS.get(self.error_class)
        return {name: getattr(self, name) for name in condition.fields} if condition else {}

    def _texts(self, fields: Mapping[str, object]) -> dict[str, str]:
        """Return the fields as the message shows them."""
        return {name: text_of(value) for name, value in fields.items()}

    def named(
        self: Error, names: str | PySparkException, /, **parameters: str | Sequence[str]
    ) -> Error:
        """Set the names that delta-spark has for this error, if our condition has several.

        Parameters
        ----------
        names
            A condition, or the error of Spark that delta-spark raises, too.
        parameters
            The condition's parameters, or, if `error_names` has an entry for it, more fields for
            the values there.
        """
        from sparkdelta.error_names import ErrorNames, has_names

        if isinstance(names, str):
            if has_names(self.error_class, names):
                self._special_names = (names, parameters)
            else:
                texts = {name: text_of(value) for name, value in parameters.items()}
                self._special_names = ErrorNames.of(names, texts)
        elif condition := names.getCondition():
            found = names.getMessageParameters() or {}
            self._special_names = ErrorNames(condition, names.getSqlState(), found)
        return self

    @property
    def has_names(self) -> bool:
        """True if `named` was called."""
        return self._special_names is not None

    def name_as_delta_spark(self, statement: str = "", table: Sequence[str] = ()) -> None:
        """Take over the condition, SQLSTATE and parameters that delta-spark has, from the first
        call on.

        Parameters
        ----------
        statement
            The first keywords of the statement that failed.
        table
            The name of its table.
        """
        from sparkdelta.error_names import ErrorNames, names_in_delta_spark

        if self._names is not None:
            return
        special = self._special_names
        if isinstance(special, ErrorNames):
            self._names = special
        else:
            condition, more = special or (None, {})
            self._names = names_in_delta_spark(
                self.error_class, self._fields() | more, statement, table, condition
            )

    def __str__(self) -> str:
        sql_state = self.getSqlState() or self.sql_state
        return f"[{self.getCondition()}] {self.message} SQLSTATE: {sql_state}"

    def __reduce__(self) -> tuple[Any, ...]:
        leaf = next(cls for cls in type(self).__mro__ if "error_class" in vars(cls))
        return _restore, (leaf, self.__dict__)

    def getCondition(self) -> str:
        """Return the error class, as PySpark's errors do."""
        return self.error_class if self._names is None else self._names.condition

    getErrorClass = getCondition

    def getMessage(self) -> str:
        return str(self)

    def getQueryContext(self) -> list[Any]:
        return []

    def getBreakingChangeInfo(self) -> None:
        return None

    def getSqlState(self) -> str | None:
        return self.sql_state if self._names is None else self._names.sql_state

    def getMessageParameters(self) -> dict[str, str]:
        from sparkdelta.error_names import ErrorNames, parameters_in_delta_spark

        if self._names is not None:
            return dict(self._names.parameters)
        special = self._special_names
        if isinstance(special, ErrorNames) and special.condition == self.error_class:
            return dict(special.parameters)
        named = parameters_in_delta_spark(self.error_class, self._fields())
        return self.message_parameters if named is None else named


def from_message(text: str) -> DeltaError | None:
    """Return the error found in an error message of Spark; None if there is none.

    Its fields are texts, or None where the message does not have them.
    """
    for found in _ERROR_TEXT.finditer(text):
        if condition := CONDITIONS.get(error_class := found["error_class"]):
            fields = dict.fromkeys(condition.fields) | condition.fields_of(found["message"])
            return _restore(
                _class_of(error_class), _attributes(error_class, found["message"], fields)
            )
    return None


_SHOWN_NAMES = 5
_ERROR_TEXT = re.compile(
    r"\[(?P<error_class>(?:DIFFERENT_)?DELTA_[A-Z0-9_]+|NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
    r"|INVALID_PARTITION_OPERATION\.[A-Z_]+|CANNOT_UP_CAST_DATATYPE)\] "
    r"(?P<message>[^\n]*?)(?= SQLSTATE: \w{5}|\n|$)"
)


def _class_of(error_class: str) -> type[DeltaError]:
    """Return the class of a condition, or `DeltaError` where the class does not exist.

    Executors that lack the package run copies of some functions, with only the classes that these
    use. Their errors reach the driver as text, from which `from_message` makes the right class.
    """
    name = CONDITIONS[error_class].class_name
    return next((cls for cls in _tree(DeltaError) if cls.__name__ == name), DeltaError)


def _new(leaf: type[DeltaError], error_class: str) -> DeltaError:
    """Return a new error of a condition, without its fields."""
    condition = CONDITIONS.get(error_class)
    raised = _raised_class(leaf, condition.spark_classes if condition else ())
    error: DeltaError = Exception.__new__(raised)
    return error


def _raised_class(leaf: type[DeltaError], spark_classes: Sequence[str]) -> type[DeltaError]:
    """Return the subclass of a class that is also a subclass of PySpark's exceptions; itself if it
    is one already.
    """
    theirs = [getattr(errors, name) for name in spark_classes]
    if all(issubclass(leaf, each) for each in theirs):
        return leaf
    bases = (leaf, *theirs)
    made = next((each for each in leaf.__subclasses__() if each.__bases__ == bases), None)
    if made is None:
        made = new_class(leaf.__name__, bases)
        made.__module__, made.__qualname__ = leaf.__module__, leaf.__qualname__
        made.__doc__ = leaf.__doc__
    return made


def _tree(root: type[DeltaError]) -> list[type[DeltaError]]:
    return [root, *(cls for child in root.__subclasses__() for cls in _tree(child))]


def _attributes(error_class: str, message: str, fields: Mapping[str, object]) -> dict[str, Any]:
    condition = CONDITIONS.get(error_class)
    return {
        **fields,
        "error_class": error_class,
        "sql_state": condition.sql_state if condition else DeltaError.sql_state,
        "message": message,
        "message_parameters": {name: text_of(value) for name, value in fields.items()},
    }


def _restore(leaf: type[DeltaError], attributes: dict[str, Any]) -> DeltaError:
    error = _new(leaf, attributes["error_class"])
    error.args = (attributes["message"],)
    error.__dict__.update(attributes)
    return error


def _nearest(name: str, names: object) -> str:
    """Return the names that are most similar to a given one, as text."""
    if not isinstance(names, Sequence) or isinstance(names, str):
        return text_of(names)

    def similarity(other: str) -> float:
        return SequenceMatcher(None, name.casefold(), str(other).casefold()).ratio()

    return ", ".join(map(str, sorted(names, key=similarity, reverse=True)[:_SHOWN_NAMES]))


class TableError(DeltaError):
    """The table, version or timestamp does not exist, or an argument is invalid."""

    error_class = "DELTA_TABLE_ERROR"


_NO_LOG = (
    "Path does not exist, or has no _delta_log directory with commits or checkpoints. "
    "Check the path"
)


class TableNotFoundError(TableError):
    error_class = "DELTA_TABLE_NOT_FOUND"

    def __init__(
        self,
        *,
        path: str,
        advice: str = _NO_LOG,
    ) -> None:
        super().__init__(path=path, advice=advice)


class VersionNotFoundError(TableError):
    error_class = "DELTA_VERSION_NOT_FOUND"


class TimestampEarlierThanCommitRetentionError(TableError):
    error_class = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"


class TimestampGreaterThanCommitError(TableError):
    error_class = "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


class InvalidArgumentError(TableError, ValueError):
    error_class = "DELTA_ILLEGAL_OPTION"


class ArgumentTypeError(TableError, TypeError):
    error_class = "DELTA_INVALID_ARGUMENT_TYPE"


class StatementSyntaxError(TableError):
    """A SQL statement is not understood; `excerpt` shows the place."""

    error_class = "DELTA_STATEMENT_SYNTAX"


class SparkMemberNotFoundError(TableError):
    error_class = "DELTA_SPARK_MEMBER_NOT_FOUND"


class MissingStreamSnapshotError(TableError):
    error_class = "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"


class ProtocolError(DeltaError):
    """The table requires something not implemented here, or violates the protocol."""

    error_class = "DELTA_PROTOCOL_ERROR"


class SchemaError(DeltaError):
    """Columns, types or expressions are invalid or do not match the table's schema."""

    error_class = "DELTA_SCHEMA_ERROR"


class ColumnNotFoundError(SchemaError):
    """There is no such column; of the `available` ones, the message has the most similar."""

    error_class = "DELTA_COLUMN_NOT_FOUND"

    def _texts(self, fields: Mapping[str, object]) -> dict[str, str]:
        nearest = _nearest(str(fields["column"]), fields["available"])
        return super()._texts(fields) | {"available": nearest}


class NonPartitionColumnReferenceError(SchemaError):
    error_class = "DELTA_NON_PARTITION_COLUMN_REFERENCE"


class InvalidPartitionValueError(SchemaError):
    error_class = "DELTA_PARTITION_COLUMN_CAST_FAILED"


class InvalidColumnNameError(SchemaError):
    error_class = "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"


class UnsupportedColumnChangeError(SchemaError):
    error_class = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"


class InvalidConditionError(SchemaError):
    """Spark does not take a text or Column for a condition; `spark_condition` names its error."""

    error_class = "DELTA_INVALID_CONDITION"


class ConstraintError(DeltaError):
    """A row violates a constraint of the table or of the write; nothing was committed."""

    error_class = "DELTA_CONSTRAINT_ERROR"


class CommitError(DeltaError):
    """A commit failed; `CommitOutcomeUnknownError` is the only one that may have committed."""

    error_class = "DELTA_COMMIT_ERROR"


class MaxCommitRetriesExceededError(CommitError):
    error_class = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"


class CommitOutcomeUnknownError(CommitError):
    error_class = "DELTA_COMMIT_OUTCOME_UNKNOWN"


class DeltaConcurrentModificationException(CommitError):
    """A concurrent commit conflicts with this one; base class of all conflict errors.

    Attributes
    ----------
    only_moved_rows
        True if the concurrent commit moved rows to other files, as OPTIMIZE does, and changed none.
    """

    error_class = "DELTA_CONCURRENT_MODIFICATION"
    only_moved_rows: bool = False


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


class StorageError(DeltaError):
    """The log, a data file or a deletion vector is missing, damaged or inaccessible."""

    error_class = "DELTA_STORAGE_ERROR"


class VersionsNotContiguousError(StorageError):
    error_class = "DELTA_VERSIONS_NOT_CONTIGUOUS"


class TruncatedTransactionLogError(StorageError):
    error_class = "DELTA_TRUNCATED_TRANSACTION_LOG"


class LogFileNotFoundError(StorageError):
    error_class = "DELTA_LOG_FILE_NOT_FOUND"


class MalformedLogFileError(StorageError):
    error_class = "DELTA_MALFORMED_LOG_FILE"


class CheckpointMismatchError(StorageError):
    error_class = "DELTA_CHECKPOINT_SNAPSHOT_MISMATCH"


class DriverReadTooLargeError(StorageError):
    error_class = "DELTA_DRIVER_READ_TOO_LARGE"


class StoreNotWritableError(StorageError):
    error_class = "DELTA_STORE_NOT_WRITABLE"


class DeletionVectorError(StorageError):
    """A deletion vector is damaged or does not match its descriptor."""

    error_class = "DELTA_DELETION_VECTOR_ERROR"

"""The settings of Spark and delta-spark that delta-spark's interfaces follow in enabled sessions.

The functions of this library depend on no setting. An interface of delta-spark names its session
with `follow_settings` while it runs, and what it calls asks here for a setting's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.schema.row_checks import CHAR_OR_VARCHAR
from sparkdelta.base.schema.store_assignment import StoreAssignment
from sparkdelta.base.spark.enabled_sessions import is_enabled
from sparkdelta.base.spark.library_sessions import (
    IN_UTC,
    UTC,
    Evaluation,
    session_evaluation,
    session_time_zone,
)
from sparkdelta.exceptions import DeltaError

_DELTA = "spark.databricks.delta"
_DEFAULT_SOURCE = "spark.sql.sources.default"
_HIVE_BY_DEFAULT = "spark.sql.legacy.createHiveTableByDefault"
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_EVOLUTION = f"{_DELTA}.schema.autoMerge.enabled"
_USER_METADATA = f"{_DELTA}.commitInfo.userMetadata"
_TXN_APP_ID = f"{_DELTA}.write.txnAppId"
_TXN_VERSION = f"{_DELTA}.write.txnVersion"
_TXN_RESET = f"{_DELTA}.write.txnVersion.autoReset.enabled"
_CATALOG = f"{_DELTA}.catalog.update.enabled"
_DEFAULTS = f"{_DELTA}.properties.defaults."
_PADDING = "spark.sql.readSideCharPadding"
_AS_STRING = "spark.sql.legacy.charVarcharAsString"
_STORE_ASSIGNMENT = "spark.sql.storeAssignmentPolicy"


class CharTypes(Enum):
    """A way to read columns that are declared as CHAR and VARCHAR.

    Attributes
    ----------
    PLAIN
        As the protocol has them, plain strings.
    DECLARED
        Spark sees the declared types, and pads CHAR values where it compares them.
    PADDED
        CHAR values are padded to their length, too.
    """

    PLAIN = "plain"
    DECLARED = "declared"
    PADDED = "padded"


@dataclass(frozen=True, slots=True)
class _Followed:
    """The session whose settings are followed; None if none are, whatever is called."""

    session: SparkSession | None


_followed: ContextVar[_Followed | None] = ContextVar("followed_settings", default=None)


@contextmanager
def follow_settings(
    spark: SparkSession | None,
    statement: str = "",
    table: Callable[[], Sequence[str] | None] | None = None,
) -> Iterator[None]:
    """Follow the settings of a session in the block if it is enabled, or no settings at all.

    Errors then have delta-spark's names. In a block within a block, the outer one decides.

    Parameters
    ----------
    statement
        As of `DeltaError.name_as_delta_spark`.
    table
        Returns the name of the table.
    """
    if _followed.get() is not None:
        yield
        return
    session = spark if spark is not None and is_enabled(spark) else None
    token = _followed.set(_Followed(session))
    try:
        yield
    except DeltaError as error:
        if session is not None:
            error.name_as_delta_spark(statement, (table() if table else None) or ())
        raise
    finally:
        _followed.reset(token)


def follows_settings() -> bool:
    """Return True in a block that follows the settings of a session."""
    return _session() is not None


def _session() -> SparkSession | None:
    followed = _followed.get()
    return None if followed is None else followed.session


def _setting(name: str) -> str | None:
    spark = _session()
    return None if spark is None else spark.conf.get(name, None)


def default_source(spark: SparkSession) -> str:
    """Return the format of tables that are created without one."""
    return str(spark.conf.get(_DEFAULT_SOURCE, "parquet"))


def creates_delta_tables() -> bool:
    """Return True if ``CREATE TABLE`` without a format creates Delta tables."""
    is_default = (_setting(_DEFAULT_SOURCE) or "").lower() == "delta"
    return is_default and (_setting(_HIVE_BY_DEFAULT) or "").lower() != "true"


def overwrites_partitions() -> bool:
    """Return True if an overwrite replaces only the partitions that its rows are in."""
    return (_setting(_OVERWRITE_MODE) or "").lower() == "dynamic"


def evolves_schemas() -> bool:
    """Return True if writes and merges add the columns that a table does not have."""
    return (_setting(_EVOLUTION) or "").lower() == "true"


def store_assignment() -> StoreAssignment:
    """Return the policy by which statements convert values to the types of columns."""
    return StoreAssignment((_setting(_STORE_ASSIGNMENT) or "ANSI").upper())


def followed_time_zone() -> str:
    """Return the time zone of timestamp partition values that have none."""
    spark = _session()
    return UTC if spark is None else session_time_zone(spark)


def followed_char_types(schema: StructType) -> CharTypes:
    """Return the way to read a table's columns that are declared as CHAR and VARCHAR."""
    is_declared = any(CHAR_OR_VARCHAR in (field.metadata or {}) for field in schema.fields)
    if not (is_declared and follows_settings()):
        return CharTypes.PLAIN
    pads = (_setting(_PADDING) or "true").lower() == "true"
    as_string = (_setting(_AS_STRING) or "false").lower() == "true"
    return CharTypes.PADDED if pads and not as_string else CharTypes.DECLARED


def rule_evaluation() -> Evaluation:
    """Return the settings by which a table's constraints, generated and default columns are
    evaluated.
    """
    spark = _session()
    return IN_UTC if spark is None else session_evaluation(spark)


def updates_catalog() -> bool:
    """Return True if commits describe their tables in the session catalog, too."""
    return (_setting(_CATALOG) or "").lower() == "true"


def user_metadata() -> str | None:
    """Return the metadata of commits that have none of their own."""
    return _setting(_USER_METADATA)


def transaction() -> tuple[str, int] | None:
    """Return the application and the version of the transaction of each change of rows.

    Raises
    ------
    DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS
        Only one of them is set, or the version is not a number or is to be reset after each change.
    """
    app_id, version = _setting(_TXN_APP_ID), _setting(_TXN_VERSION)
    if app_id is None and version is None:
        return None
    problem = None
    if app_id is None or version is None:
        problem = f"only one of {_TXN_APP_ID} and {_TXN_VERSION} is set"
    elif (_setting(_TXN_RESET) or "").lower() == "true":
        problem = f"{_TXN_RESET} is not implemented; unset it, and set the version for each change"
    elif not version.isdecimal():
        problem = f"{_TXN_VERSION} is not a version: {version!r}"
    if problem is not None:
        raise DeltaError.of("DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", problem=problem)
    return str(app_id), int(str(version))


def default_properties() -> dict[str, str]:
    """Return the table properties of new tables that the settings give, by their names."""
    spark = _session()
    if spark is None:
        return {}
    return {
        f"delta.{name.removeprefix(_DEFAULTS)}": text
        for name, text in spark.conf.getAll.items()
        if name.startswith(_DEFAULTS)
    }

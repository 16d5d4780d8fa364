"""Settings of Spark and delta-spark that have no effect here, where ignoring them would write other
rows, columns or properties than delta-spark does.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.sql import SparkSession

from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.table.definition.write_options import WriteOptions

_LOGGER = logging.getLogger(__name__)

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_DELTA = "spark.databricks.delta"
_EVOLVES = f"{_DELTA}.schema.autoMerge.enabled"
_INSTEAD_OF_EVOLVES = "WITH SCHEMA EVOLUTION, withSchemaEvolution() or the option mergeSchema"
_OF_COMMITS: Mapping[str, str] = {
    f"{_DELTA}.write.txnAppId": "the options txnAppId and txnVersion of df.write",
    f"{_DELTA}.commitInfo.userMetadata": "the option userMetadata of df.write",
}
"""The option to use in place of each setting."""
_DEFAULTS = f"{_DELTA}.properties.defaults."


def check_overwrite_setting(spark: SparkSession, options: WriteOptions) -> None:
    """Refuse to overwrite a whole table where a setting of the session asks for less.

    Raises
    ------
    InvalidArgumentError
    """
    is_whole = options.mode == "overwrite" and options.replace_where is None
    if not is_whole or options.is_dynamic or options.overwrite_schema:
        return
    if str(spark.conf.get(_OVERWRITE_MODE, "static")).lower() == "dynamic":
        problem = (
            f"{_OVERWRITE_MODE} is dynamic, which has no effect here; give the option "
            "partitionOverwriteMode of df.write, or set it to static"
        )
        raise InvalidArgumentError(argument="partitionOverwriteMode", problem=problem)


def check_commit_settings(spark: SparkSession) -> None:
    """Refuse a commit where a setting of delta-spark asks for a transaction or metadata in it.

    Raises
    ------
    InvalidArgumentError
    """
    for setting, instead in _OF_COMMITS.items():
        if spark.conf.get(setting, None):
            raise _ignored(setting, instead)


def check_evolution_setting(spark: SparkSession) -> None:
    """Refuse to write rows without schema evolution where a setting of delta-spark asks for it.

    Raises
    ------
    InvalidArgumentError
    """
    if _asks_for_evolution(spark):
        raise _ignored(_EVOLVES, _INSTEAD_OF_EVOLVES)


def warn_of_evolution_setting(spark: SparkSession) -> None:
    """Warn if delta-spark's schema-evolution setting is on, which has no effect on a merge without
    schema evolution.
    """
    if _asks_for_evolution(spark):
        _LOGGER.warning("%s has no effect; use %s", _EVOLVES, _INSTEAD_OF_EVOLVES)


def _asks_for_evolution(spark: SparkSession) -> bool:
    return str(spark.conf.get(_EVOLVES, "false")).lower() == "true"


def check_property_settings(spark: SparkSession) -> None:
    """Refuse to create a table where settings of delta-spark are default table properties.

    Raises
    ------
    InvalidArgumentError
    """
    for setting in spark.conf.getAll:
        if setting.startswith(_DEFAULTS):
            name = f"delta.{setting.removeprefix(_DEFAULTS)}"
            raise _ignored(setting, f"the table property {name}")


def _ignored(setting: str, instead: str) -> InvalidArgumentError:
    problem = f"this setting has no effect here; unset it, and use {instead}"
    return InvalidArgumentError(argument=setting, problem=problem)

"""The names that delta-spark gives to errors and to their parameters, as data.

Each line without an indent has a condition of `error_conditions`. Where delta-spark raises another
one, that and its SQLSTATE follow after ``=``; it counts in enabled sessions only, see
`DeltaError.name_as_delta_spark`. If it is raised by some statements, they follow after ``|``, or
``-`` if only the code that raises the error knows; the entry of the others stands below.

The lines below have the parameters, each with its value. Names in braces are fields of the error;
``statement``, the first keywords of the one that failed; or ``target``, its table, which is also
``in_database``, without the catalog, and of which ``schema`` is the first part. The notation of a
value, one of `_NOTATIONS`, stands after a colon.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from string import Formatter
from typing import Any, NamedTuple

from sparkdelta.error_conditions import CONDITIONS, text_of

_ENTRIES = r"""
DELTA_TABLE_NOT_FOUND = DELTA_TABLE_ONLY_OPERATION 0AKDD | DESCRIBE_HISTORY
    tableName={path:quoted} operation={statement}
DELTA_TABLE_NOT_FOUND = DELTA_MISSING_DELTA_TABLE 42P01 | DESCRIBE DESC SHOW TRUNCATE ALTER OPTIMIZE REORG VACUUM GENERATE DeltaTable
    tableName={path:quoted}
DELTA_TABLE_NOT_FOUND = PATH_NOT_FOUND 42K03
    path={path}
DELTA_VERSION_NOT_FOUND
    userVersion={version} earliest={earliest} latest={latest}
DELTA_CANNOT_RESTORE_TABLE_VERSION
    version={version} startVersion={earliest} endVersion={latest}
DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER
    requestedTimestamp={timestamp:java_time} earliestTimestamp={earliest:java_time}
DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER
    requestedTimestamp={timestamp:java_time} latestTimestamp={latest:java_time}
DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT
    configuredRetentionHours={least_hours}
DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE
DELTA_INVALID_INVENTORY_SCHEMA
    expectedSchema='root\n |-- path: string (nullable = true)\n |-- length: long (nullable = true)\n |-- isDir: boolean (nullable = true)\n |-- modificationTime: long (nullable = true)\n'
DELTA_NO_COMMITS_FOUND
    logPath={path}/_delta_log
DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
    userTimestamp={timestamp:java_time} commitTs={earliest:java_time} timestampString={earliest:java_seconds}
DELTA_TIMESTAMP_GREATER_THAN_COMMIT
    providedTimestamp={timestamp:java_time} lastCommitTimestamp={latest:java_time} maximumTimestamp={latest:java_seconds}
DELTA_TIMESTAMP_INVALID = INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT 42K0E | SELECT INSERT WITH
    expr={value:requoted}
DELTA_TIMESTAMP_INVALID
    expr={value}
DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE
    timeTravelKey=versionAsOf
DELTA_STATEMENT_SYNTAX = DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED 0AKDC | TRUNCATE
DELTA_STATEMENT_SYNTAX = NOT_SUPPORTED_CHANGE_SAME_COLUMN 0A000 | -
    table={target:quoted} fieldName={name:quoted_column}
DELTA_STATEMENT_SYNTAX = DELTA_OPERATION_NOT_ALLOWED_DETAIL 0AKDC | -
    operation=Bucketing tableName={in_database:quoted}
DELTA_STATEMENT_NOT_SUPPORTED = UNSUPPORTED_FEATURE.TABLE_OPERATION 0A000 | -
    tableName={target:quoted} operation={operation}
DELTA_UNSUPPORTED_SOURCE
    operation={operation} plan='Some({view})'
DELTA_UNEXPECTED_PARTIAL_SCAN
    path={path}
DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION
    historicalVersion={version}
DELTA_ILLEGAL_OPTION = UNSUPPORTED_TABLE_CHANGE 0A000 | ALTER
    message={problem}
DELTA_ILLEGAL_OPTION
    input={argument} name={argument} explain={problem}
NOT_SUPPORTED_COMMAND_FOR_V2_TABLE
    cmd={statement}
DELTA_OPERATION_NOT_ALLOWED
    operation={operation}
INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED
    name={target:quoted}
DELTA_INSERT_COLUMN_ARITY_MISMATCH
    tableName={target:dotted} columnName='not enough data columns' numColumns={expected} insertColumns={given}
DELTA_INSERT_COLUMN_ARITY_MISMATCH = INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS 21S01 | -
    tableName={target:quoted} tableColumns={table_columns:quoted_list} dataColumns={data_columns:quoted_list}
DELTA_INSERT_COLUMN_ARITY_MISMATCH = INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS 21S01 | -
    tableName={target:quoted} tableColumns={table_columns:quoted_list} dataColumns={data_columns:quoted_list}
DELTA_TABLE_ALREADY_EXISTS | CLONE
    tableName={target:quoted}
DELTA_TABLE_ALREADY_EXISTS = DELTA_PATH_EXISTS 42K04 | save
    path={path}
DELTA_TABLE_ALREADY_EXISTS = TABLE_OR_VIEW_ALREADY_EXISTS 42P07
    relationName={in_database:quoted}
DELTA_TABLE_LOCATION_MISMATCH
    tableName={table} existingTableLocation={path:quoted} tableLocation={location:quoted}
DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE
    identifier={path:quoted} location={location} config=spark.databricks.delta.legacy.allowAmbiguousPathsInCreateTable
DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION
    tableId={target:quoted} tableLocation={path}
DELTA_CONVERT_NON_PARQUET_TABLE
    sourceName={source} tableId={source:quoted}.{table:quoted}
DELTA_MISSING_PROVIDER_FOR_CONVERT
    path={identifier}
DELTA_EMPTY_DIRECTORY
    directory={directory}
DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS
    statisticsCollectionPropertyKey=spark.databricks.delta.stats.collect
    rowTrackingTableFeatureDefaultKey=spark.databricks.delta.properties.defaults.feature.rowTracking
    rowTrackingDefaultPropertyKey=spark.databricks.delta.properties.defaults.enableRowTracking
DELTA_UNSUPPORTED_NON_EMPTY_CLONE
DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS
DELTA_CANNOT_REPLACE_MISSING_TABLE | CLONE
    tableName={in_database:dotted}
DELTA_CANNOT_REPLACE_MISSING_TABLE = TABLE_OR_VIEW_NOT_FOUND 42P01
    relationName={in_database:quoted} searchPath=[{schema:quoted}]
DELTA_UNKNOWN_CONFIGURATION
    config={property} disableCheckConfig=spark.databricks.delta.allowArbitraryProperties.enabled
DELTA_CANNOT_RENAME_PATH
    currentPath={path} newPath={new_path}
DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER
DELTA_SET_LOCATION_SCHEMA_MISMATCH
    original={original} destination={destination} config=spark.databricks.delta.alterLocation.bypassSchemaCheck
DELTA_UNSUPPORTED_FEATURES_IN_CONFIG
    configs={property}
DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED
DELTA_CLUSTERING_WITH_PARTITION_PREDICATE
    predicates={condition}
DELTA_CLUSTERING_WITH_ZORDER_BY
    zOrderBy={columns}
DELTA_OPTIMIZE_FULL_NOT_SUPPORTED
DELTA_UNSET_NON_EXISTENT_PROPERTY
    property={property} tableName={target:quoted}
DELTA_ADD_CONSTRAINTS
DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED
    tableFeature=clustering
DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED
    tableFeature=clustering
DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS = DELTA_ONEOF_IN_TIMETRAVEL 42601 | load
DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS
DELTA_NO_START_FOR_CDC_READ
DELTA_MULTIPLE_CDC_BOUNDARY
    startingOrEnding={bound}ing
DELTA_INVALID_CDC_RANGE
    start={start} end={end}
DELTA_CDC_START_VERSION_AFTER_LATEST
    start={start} latest={latest}
DELTA_MISSING_CHANGE_DATA
    startVersion={start} endVersion={end} version={version} key=delta.enableChangeDataFeed
DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE
    start={start} end={end} readSchema={read_schema} readVersion={schema_version}
    incompatibleVersion={version}
DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA
    start={start} end={end} readSchema={read_schema} readVersion={schema_version}
    incompatibleVersion={version}
    config=spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable
DELTA_UNSUPPORTED_OUTPUT_MODE
    dataSource=delta mode={mode}
DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET
    version=startingVersion timestamp=startingTimestamp
DELTA_REGEX_OPT_SYNTAX_ERROR
    regExpOption=excludeRegex
DELTA_INVALID_SOURCE_OFFSET_FORMAT
DELTA_INVALID_SOURCE_VERSION
    version={version}
DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION
    expectedVersion=3 realVersion={version}
DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE
    newTableId={new} oldTableId={old}
DELTA_SOURCE_IGNORE_DELETE
    removedFile={file} version={version} dataPath={path}
DELTA_SOURCE_TABLE_IGNORE_CHANGES
    changeInfo={file} version={version} dataPath={path}
DELTA_MISSING_FILES_UNEXPECTED_VERSION
    startVersion={version} earliestVersion={earliest} option=failOnDataLoss
DELTA_STREAMING_TRAILING_COMMIT_MISSING
    expectedVersion={version} seenVersion={latest}
DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE
DELTA_SCHEMA_CHANGED_WITH_VERSION
    version={version} readSchema={old} dataSchema={new}
DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS
    version={version} readSchema={old} dataSchema={new}
DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS
    schemaDiff={problem} legacyFlagMessage=''
DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG
    docLink=https://docs.delta.io/latest/versioning.html#column-mapping readSchema={old}
    incompatibleSchema={new}
DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA
    file={path}
DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS
    reason={problem}
DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE
DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE
DELTA_DATA_CHANGE_FALSE
    op={what}
DELTA_UNSUPPORTED_FEATURES_FOR_READ
    tableNameOrPath={path} deltaVersion=4.4.0 unsupported={features}
DELTA_UNSUPPORTED_FEATURES_FOR_WRITE
    tableNameOrPath={path} deltaVersion=4.4.0 unsupported={features}
DELTA_INVALID_PROTOCOL_VERSION
    tableNameOrPath={path} readerRequired={reader_version} writerRequired={writer_version}
    deltaVersion=4.4.0 supportedReaders='1, 2, 3' supportedWriters='1, 2, 3, 4, 5, 6, 7'
DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED
    path={path}
DELTA_ICEBERG_COMPAT_VIOLATION = DELTA_ICEBERG_COMPAT_VIOLATION.{violation} KD00E
    version={version}
DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA
    fieldName={field} fromType={from_type:type} toType={to_type:type}
DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED = DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION 0A000
    table={target:dotted}
DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS
DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING
DELTA_MODE_NOT_SUPPORTED
    mode={mode} supportedModes=symlink_format_manifest
DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION
    property1={enabled} property2={suspended}
DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE
    feature={feature}
DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT
    feature={feature}
DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE
    feature={feature}
DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED
DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY
    property={property}
DELTA_FEATURE_DROP_DEPENDENT_FEATURE
    feature={feature} dependentFeatures={dependents}
DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION
DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD
    truncateHistoryLogRetentionPeriod={retention:interval}
DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD
    feature={feature} logRetentionPeriodKey=delta.logRetentionDuration
    logRetentionPeriod={retention:interval} truncateHistoryLogRetentionPeriod={short_retention:interval}
DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST
    feature={feature} logRetentionPeriodKey=delta.logRetentionDuration
    logRetentionPeriod={retention:interval} truncateHistoryLogRetentionPeriod={short_retention:interval}
DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL
    concurrentCommit=''
DELTA_FEATURE_DROP_CHECKPOINT_FAILED
    featureName={feature}
DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE
    constraints={constraints:quoted_list}
DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE
    oldMode={before} newMode={after}
DELTA_SCHEMA_NOT_SET
DELTA_READ_TABLE_WITHOUT_COLUMNS
    tableName=`delta`.{path:quoted}
DELTA_SCHEMA_NOT_PROVIDED
DELTA_UNSUPPORTED_DATA_TYPES
    dataTypeList='[{column}: {data_type}]' config=spark.databricks.delta.schema.typeCheck.enabled
DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE
    columName={column} dataType={data_type}
DELTA_CANNOT_WRITE_EMPTY_SCHEMA = DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS 428GU
DELTA_COLUMN_NOT_FOUND = FIELD_NOT_FOUND 42704 | -
    fieldName={name:quoted} fields={available}
DELTA_COLUMN_NOT_FOUND = INVALID_FIELD_NAME 42000 | -
    fieldName={name:quoted_column} path={parent:quoted_column}
DELTA_COLUMN_NOT_FOUND = DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE 0AKDC | -
    struct={data_type}
DELTA_COLUMN_NOT_FOUND = DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY 0AKDC | -
    fieldPath={column}
DELTA_COLUMN_NOT_FOUND = UNRESOLVED_COLUMN.WITH_SUGGESTION 42703
    objectName={column:quoted_column} proposal={available:quoted_list}
DELTA_PARTITION_COLUMN_NOT_FOUND
    columnName={column} schemaMap={available}
DELTA_PARTITION_COLUMN_CAST_FAILED
    value={value} dataType={data_type} columnName={column}
DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME
    expectedColsSize={expected:number} expectedCols={expected:bracketed_list} parsedColsSize={found:number} parsedCols={found:bracketed_list} path={path}
DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME
    expectedCol={expected:quoted} parsedCol={found:quoted} path={path}
DELTA_FAILED_CAST_PARTITION_VALUE
    value={value} dataType={data_type}
DELTA_FAILED_MERGE_SCHEMA_FILE
    file={file} schema={problem}
DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN = UNSUPPORTED_EXPRESSION_GENERATED_COLUMN 42621
    fieldName={name} expressionStr={expression} reason='generation expression is not deterministic'
DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT
    expr={expression}
DELTA_UDF_IN_GENERATED_COLUMN
    udfExpr={expression}
DELTA_UDF_IN_CHECK_CONSTRAINT
    expr={expression}
DELTA_AGGREGATE_IN_GENERATED_COLUMN
    sqlExpr={expression}
DELTA_AGGREGATE_IN_CHECK_CONSTRAINT = INVALID_WHERE_CONDITION 42903 | ALTER
    condition={expression:double_quoted} expressionList={expression}
DELTA_AGGREGATE_IN_CHECK_CONSTRAINT
    sqlExpr={expression}
DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN
    expression={expression}
DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT
    expression={expression}
DELTA_NON_BOOLEAN_CHECK_CONSTRAINT
    name={name} expr={expression}
DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH
    columnName={column} expressionType={expression_type:type} columnType={column_type:type}
DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION = ALL_PARTITION_COLUMNS_NOT_ALLOWED KD005 | CREATE REPLACE
DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION
DELTA_UNSUPPORTED_RENAME_COLUMN
    advice="\nPlease enable Column Mapping on your Delta table with mapping mode 'name'.\nYou can use one of the following commands.\n\nALTER TABLE table_name SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')\n\nNote, if your table is not on the required protocol version it will be upgraded.\nColumn mapping requires at least protocol (2, 5)\n"
DELTA_UNSUPPORTED_DROP_COLUMN
    advice="\nPlease enable Column Mapping on your Delta table with mapping mode 'name'.\nYou can use one of the following commands.\n\nALTER TABLE table_name SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')\n\nNote, if your table is not on the required protocol version it will be upgraded.\nColumn mapping requires at least protocol (2, 5)\n"
DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP = CANNOT_UPDATE_FIELD.STRUCT_TYPE 0A000 | -
    table={target:quoted} fieldName={column:quoted_column}
DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP = NOT_SUPPORTED_CHANGE_COLUMN 0A000 | -
    originType={before:quoted_type} originName={column:quoted_column} table={target:quoted} newType={after:quoted_type} newName={column:quoted_column}
DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP
    fieldPath={column} oldField={before:type} newField={after:type}
DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP
    details={problem}
DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN
    columnList={column}
DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN
    columnList={column}
DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA
    schema={schema}
DELTA_ADD_COLUMN_PARENT_NOT_STRUCT = INVALID_FIELD_NAME 42000
    fieldName={column:quoted_column}.{name:quoted} path={column:quoted_column}
DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE
    columnName={column} generatedColumns='{name} -> {expression}'
DELTA_CONSTRAINT_DATA_TYPE_MISMATCH
    columnName={column} columnType={column_type:type} dataType={data_type:type} constraints={constraints}
DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH
    columnName={column} columnType={column_type:type} dataType={data_type:type}
    generatedColumns={generated_columns}
DELTA_CONSTRAINT_ALREADY_EXISTS
    constraintName={name} oldConstraint={expression}
DELTA_CONSTRAINT_DOES_NOT_EXIST
    constraintName={name} tableName={in_database:quoted}
    config=spark.databricks.delta.constraints.assumesDropIfExists.enabled confValue=true
DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN
DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED
DELTA_NON_PARTITION_COLUMN_REFERENCE = NON_PARTITION_COLUMN 42000 | INSERT
    columnName={column:quoted}
DELTA_NON_PARTITION_COLUMN_REFERENCE
    columnName={column} columnList={available}
DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE
    tableName={target:dotted}
DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN
    badCols=[{column}]
DELTA_ZORDERING_ON_PARTITION_COLUMN
    colName={column}
DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST
    columnName={column}
DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS
    cols=[{columns}] zorderColStatKey=spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled
DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES
    operation={operation} dataTypeList='[{column}: {data_type}]'
DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED
    srid=-1
DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE
    colNames={columns}
DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS
    columnList=[{columns}]
DELTA_DUPLICATE_COLUMNS_FOUND = COLUMN_ALREADY_EXISTS 42711 | CREATE REPLACE ALTER
    columnName={columns:first_quoted}
DELTA_DUPLICATE_COLUMNS_FOUND = DELTA_DUPLICATE_COLUMNS_FOUND.DATA 42711
    duplicateCols={columns:first}
DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING
    invalidColumnNames={column}
DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES
    invalidColumnNames={column}
DELTA_METADATA_MISMATCH
DELTA_FAILED_TO_MERGE_FIELDS = DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION 42K09 | INSERT
    srcType={row_type:quoted_type} targetType={table_type:quoted_type} sqlExpr={column:double_quoted}
DELTA_FAILED_TO_MERGE_FIELDS
    currentField={column} updateField={column}
DELTA_UNIVERSAL_FORMAT_VIOLATION
    format=iceberg violation='Requires IcebergCompat to be explicitly enabled in order for Universal Format (Iceberg) to be enabled on an existing table. Supported versions are IcebergCompatV1 and IcebergCompatV2.'
CANNOT_UP_CAST_DATATYPE
    expression={column} sourceType={row_type:quoted_type} targetType={table_type:quoted_type}
    details='The type path of the target object is:\n\nYou can either add an explicit cast to the input data or choose a higher precision type of the field in the target object'
DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED = INVALID_NON_DETERMINISTIC_EXPRESSIONS 42K0E | DELETE UPDATE
    sqlExprs='"({condition})"'
DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED
    operation={operation:merge_condition} expression={condition}
DELTA_UNSUPPORTED_SUBQUERY
    operation={operation:merge_condition} cond={condition}
DELTA_MISSING_SET_COLUMN = FIELD_NOT_FOUND 42704
    fieldName={column:quoted_last_parts} fields={available:quoted_last_parts}
DELTA_CONFLICT_SET_COLUMN
    columnList={columns:bracketed_list}
DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT = INVALID_EXTRACT_BASE_FIELD_TYPE 42000
    base={column:double_quoted} other={data_type:quoted_type}
DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION = DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION 42K09 | -
    srcType={value_type:quoted_type} targetType={column_type:quoted_type} sqlExpr={column:double_quoted}
DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION = DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION 42K09 | -
    srcType={value_type:quoted_type} targetType={column_type:quoted_type} functionNames=`UNIX_DATE` sqlExpr={column:double_quoted}
DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION
    fromCatalog={value_type} toCatalog={column_type}
DELTA_MERGE_MISSING_WHEN = MERGE_WITHOUT_WHEN 42601
DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION = NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION 42613 | MERGE
DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION
DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION = NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION 42613 | MERGE
DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION
DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION = NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION 42613 | MERGE
DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION
DELTA_MERGE_UNRESOLVED_EXPRESSION
    sqlExpr={column} clause={clause} cols={available}
DELTA_DUPLICATE_COLUMNS_ON_INSERT
DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION
    operation='INSERT clause of MERGE operation' fieldName={column:quoted_column}
DELTA_MERGE_ADD_VOID_COLUMN
    newColumn={column:quoted}
DELTA_AGGREGATION_NOT_SUPPORTED = UNSUPPORTED_EXPR_FOR_OPERATOR 42K0E | DELETE UPDATE
    invalidExprSqls={condition:double_quoted}
DELTA_AGGREGATION_NOT_SUPPORTED
    operation={operation:merge_condition} predicate={condition}
DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
    columnName={column} constraints={constraints:lines}
DELTA_NEW_CHECK_CONSTRAINT_VIOLATION
    numRows={num_rows} tableName={target:dotted} checkConstraint={expression}
DELTA_NOT_NULL_CONSTRAINT_VIOLATED
    columnName={column}
DELTA_MISSING_NOT_NULL_COLUMN_VALUE = DELTA_INSERT_COLUMN_MISMATCH 42802 | INSERT
    columnName={columns}
DELTA_MISSING_NOT_NULL_COLUMN_VALUE
    columnName={columns}
DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
    constraintName={constraint} expression={expression} values={row}
DELTA_CAST_OVERFLOW_IN_TABLE_WRITE = CAST_OVERFLOW_IN_TABLE_INSERT 22003 | INSERT
    sourceType={row_type:quoted_type} targetType={table_type:quoted_type} columnName={column:quoted}
DELTA_CAST_OVERFLOW_IN_TABLE_WRITE
    sourceType={row_type:quoted_type} targetType={table_type:quoted_type} columnName={column:quoted}
    storeAssignmentPolicyFlag=spark.sql.storeAssignmentPolicy
    updateAndMergeCastingFollowsAnsiEnabledFlag=spark.databricks.delta.updateAndMergeCastingFollowsAnsiEnabledFlag
    ansiEnabledFlag=spark.sql.ansi.enabled
DELTA_CAST_INVALID_INPUT = CAST_INVALID_INPUT 22018
    expression="'{value}'" sourceType={row_type:quoted_type} targetType={table_type:quoted_type}
    ansiConfig='"spark.sql.ansi.enabled"'
DELTA_EXCEED_CHAR_VARCHAR_LIMIT
    value={value} expr='(({column} IS NULL) OR (length({column}) <= {data_type:length}))'
DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED
    colName={column}
DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED
    colName={column}
DELTA_REPLACE_WHERE_MISMATCH
    replaceWhere={where} message=''
DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE
    usageReference=https://docs.delta.io/latest/delta-update.html#upsert-into-a-table-using-merge
DELTA_NUM_RECORDS_MISMATCH
    operation={operation} numAddedRecords={found} numRemovedRecords={expected}
DELTA_CANNOT_MODIFY_APPEND_ONLY
    table_name=null config=delta.appendOnly
DELTA_CONCURRENT_APPEND = DELTA_CONCURRENT_APPEND.WITHOUT_HINT 2D521
    operation={operation} tableName={target:name_or_path} version={version}
    docLink=https://docs.delta.io/latest/concurrency-control.html
DELTA_CONCURRENT_DELETE_READ = DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT 2D521
    operation={operation} tableName={target:name_or_path} version={version}
    docLink=https://docs.delta.io/latest/concurrency-control.html
DELTA_CONCURRENT_DELETE_DELETE = DELTA_CONCURRENT_DELETE_DELETE.WITHOUT_HINT 2D521
    operation={operation} tableName={target:name_or_path} version={version}
    docLink=https://docs.delta.io/latest/concurrency-control.html
DELTA_CONCURRENT_WRITE
DELTA_CONCURRENT_TRANSACTION
DELTA_PROTOCOL_CHANGED
DELTA_METADATA_CHANGED
    tableName={target:name_or_path} conflictingCommit='version {version} ({operation})' docLink=https://docs.delta.io/latest/concurrency-control.html
DELTA_FAILED_READ_FILE_FOOTER
    currentFile={path}
DELTA_VERSIONS_NOT_CONTIGUOUS
    versionList={versions} startVersion={start} endVersion={end} versionToLoad={version_to_load}
DELTA_TRUNCATED_TRANSACTION_LOG
    path={path} version={version} logRetentionKey=delta.logRetentionDuration logRetention='30 days'
    checkpointRetentionKey=delta.checkpointRetentionDuration checkpointRetention='2 days'
DELTA_MISSING_PART_FILES
    version={version}
DELTA_STATE_RECOVER_ERROR
    operation={what} version={version}
DELTA_MISSING_COMMIT_INFO
    featureName=inCommitTimestamp version={version}
DELTA_MISSING_COMMIT_TIMESTAMP
    featureName=inCommitTimestamp version={version}
DELTA_FILE_NOT_FOUND
    path={file}
DELTA_CHECKPOINT_SNAPSHOT_MISMATCH
DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH
DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH
DELTA_DELETION_VECTOR_SIZE_MISMATCH
DELTA_DELETION_VECTOR_INVALID_ROW_INDEX
"""  # noqa: E501 - names of conditions, settings and texts

_STATES = {
    "AMBIGUOUS_REFERENCE": "42704",
    "CATALOG_NOT_FOUND": "42P08",
    "DELTA_CANNOT_WRITE_INTO_VIEW": "0A000",
    "DELTA_CLONE_UNSUPPORTED_SOURCE": "0AKDC",
    "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED": "0A000",
    "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA": "42703",
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING": "42KD7",
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY": "42KD7",
    "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY": "42711",
    "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE": "428H2",
    "DELTA_INVALID_INTERVAL": "22006",
    "DELTA_MISSING_COLUMN": "42703",
    "DELTA_NOT_A_DELTA_TABLE": "0AKDD",
    "DELTA_ONLY_OPERATION": "0AKDD",
    "DELTA_OPERATION_NOT_ALLOWED_DETAIL": "0AKDC",
    "DELTA_UNSUPPORTED_FEATURE_STATUS": "0AKDE",
    "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS": "54000",
    "DUPLICATE_CLAUSES": "42614",
    "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE": "42809",
    "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE": "42809",
    "EXPECT_VIEW_NOT_TABLE.USE_ALTER_TABLE": "42809",
    "FIELD_ALREADY_EXISTS": "42710",
    "FIELD_NOT_FOUND": "42704",
    "IDENTITY_COLUMNS_ILLEGAL_STEP": "42611",
    "INVALID_DEFAULT_VALUE.DATA_TYPE": "42623",
    "INVALID_DEFAULT_VALUE.NOT_CONSTANT": "42623",
    "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION": "42623",
    "INVALID_PARTITION_COLUMN_DATA_TYPE": "0A000",
    "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.NON_DETERMINISTIC": "42K0E",
    "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE": "42K0E",
    "MULTIPLE_TIME_TRAVEL_SPEC": "42K0E",
    "REQUIRES_SINGLE_PART_NAMESPACE": "42K05",
    "TABLE_OR_VIEW_ALREADY_EXISTS": "42P07",
    "TABLE_OR_VIEW_NOT_FOUND": "42P01",
    "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY": "0A000",
    "UNSUPPORTED_DATATYPE": "0A000",
    "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN": "42621",
    "UNSUPPORTED_EXPR_FOR_OPERATOR": "42K0E",
    "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY": "0A000",
    "UNSUPPORTED_FEATURE.TABLE_OPERATION": "0A000",
    "UNSUPPORTED_FEATURE.TIME_TRAVEL": "0A000",
}
"""The SQLSTATEs of the conditions for `DeltaError.named`."""


class ErrorNames(NamedTuple):
    """The condition of an error, its SQLSTATE and its parameters."""

    condition: str
    sql_state: str | None
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, condition: str, parameters: Mapping[str, str]) -> ErrorNames:
        """Return the names of a condition of Spark or delta-spark."""
        ours = CONDITIONS.get(condition)
        return cls(condition, ours.sql_state if ours else _STATES[condition], parameters)


class _Entry(NamedTuple):
    """An entry of the data.

    Attributes
    ----------
    condition, sql_state
        None if delta-spark has our condition.
    statements
        The statements of the entry; all if there are none.
    parameters
        Templates of the values.
    """

    condition: str | None
    sql_state: str | None
    statements: tuple[str, ...]
    parameters: Mapping[str, str]


def names_in_delta_spark(
    error_class: str,
    fields: Mapping[str, object],
    statement: str,
    table: Sequence[str],
    condition: str | None = None,
) -> ErrorNames | None:
    """Return the names that delta-spark gives to an error; None if it has no such error.

    Parameters
    ----------
    condition
        The one of delta-spark, if it is known.
    fields
        The fields of the error.
    statement
        The first keywords of the statement that failed.
    table
        The name of its table, with catalog and database; empty if it is a path.
    """
    keywords = str(fields.get("operation") or statement).split()
    matching = (
        entry
        for entry in _entries_of(error_class)
        if (
            entry.condition == condition
            if condition
            else not entry.statements or _is_of(keywords, entry.statements)
        )
    )
    entry = next(matching, None)
    if entry is None:
        return None
    return ErrorNames(
        _VALUES.vformat(entry.condition or error_class, (), fields),
        entry.sql_state or CONDITIONS[error_class].sql_state,
        _parameters(entry, fields, statement, table),
    )


def has_names(error_class: str, condition: str) -> bool:
    """Return True if there is an entry for a condition of delta-spark's."""
    return any(entry.condition == condition for entry in _entries_of(error_class))


def parameters_in_delta_spark(
    error_class: str, fields: Mapping[str, object]
) -> dict[str, str] | None:
    """Return the parameters of an error, if delta-spark has the same condition."""
    entry = next((each for each in _entries_of(error_class) if each.condition is None), None)
    return None if entry is None else _parameters(entry, fields)


def _is_of(keywords: Sequence[str], statements: Sequence[str]) -> bool:
    """Return True if a statement begins with the keywords of one of several statements."""
    return any(
        list(keywords[: len(words)]) == words for words in (each.split("_") for each in statements)
    )


def _parts(value: Any) -> Sequence[str]:
    return [value] if isinstance(value, str) and value else value


def _items(value: Any) -> Sequence[str]:
    return value.split(", ") if isinstance(value, str) and value else value


def _quoted(names: Any) -> list[str]:
    return [f"`{name.replace('`', '``')}`" for name in map(str, _parts(names))]


def sql_type(text: str) -> str:
    """Return a type as SQL has it: ``STRUCT<a: INT>`` for ``struct<a:int>``."""
    spaced = re.sub(r":(?=\w)", ": ", re.sub(r",(?=[^\d\s])", ", ", text))
    return re.sub(r"\b\w+\b(?!:)", lambda word: word[0].upper(), spaced)


def _java_time(time: datetime | date | str) -> str:
    """Return a time as ``java.sql.Timestamp`` writes it."""
    if isinstance(time, str):
        try:
            return _java_time(datetime.fromisoformat(time.replace("Z", "+00:00")))
        except ValueError:
            return time
    local = time.astimezone() if isinstance(time, datetime) and time.tzinfo else time
    return f"{local:%Y-%m-%d %H:%M:%S}.{f'{local:%f}'.rstrip('0') or '0'}"


def _name_or_path(names: Any) -> str:
    """Return the name of a table with its catalog, or its path as SQL has it."""
    parts = _parts(names)
    return ".".join(parts) if len(parts) > 2 else f"delta.`{parts[-1]}`"


def _condition_of_merge(operation: str) -> str:
    """Return the operation of an error about a condition of MERGE."""
    words = operation.split()
    if len(words) == 1:
        return operation
    kind = "search" if words[-1] == "ON" else words[-1]
    return f"{kind} condition of MERGE operation"


_NOTATIONS: Mapping[str, Callable[[Any], str]] = {
    "type": sql_type,
    "quoted_last_parts": lambda names: ", ".join(
        _quoted([name.split(".")[-1] for name in _items(names)])
    ),
    "first_quoted": lambda names: _quoted(_items(names))[0].lower(),
    "first": lambda names: _items(names)[0].lower(),
    "interval": lambda text: text.removeprefix("interval "),
    "java_time": _java_time,
    "quoted_list": lambda names: ", ".join(_quoted(_items(names))),
    "bracketed_list": lambda names: f"[{', '.join(_quoted(_items(names)))}]",
    "merge_condition": _condition_of_merge,
    "quoted": lambda names: ".".join(_quoted(names)),
    "quoted_column": lambda column: ".".join(_quoted(column.split("."))),
    "dotted": lambda names: ".".join(_parts(names)),
    "name_or_path": _name_or_path,
    "double_quoted": lambda text: f'"{text}"',
    "java_seconds": lambda time: _java_time(time).partition(".")[0],
    "length": lambda text: text.rstrip(")").partition("(")[2],
    "quoted_type": lambda text: f'"{sql_type(text)}"',
    "requoted": lambda text: '"{}"'.format(text.strip("'")),
    "lines": "\n".join,
    "number": lambda items: str(len(_items(items))),
}


class _Values(Formatter):
    """The formatter of parameters."""

    def format_field(self, value: Any, format_spec: str) -> str:
        is_plain = value is None or not format_spec
        return text_of(value if is_plain else _NOTATIONS[format_spec](value))


_VALUES = _Values()


def _parameters(
    entry: _Entry, fields: Mapping[str, object], statement: str = "", table: Sequence[str] = ()
) -> dict[str, str]:
    name = tuple(table) or (text_of(fields.get("path")),)
    values = {
        "statement": statement,
        "target": name,
        "in_database": name[-2:],
        "schema": name[:-1],
        **fields,
    }
    return {key: _VALUES.vformat(text, (), values) for key, text in entry.parameters.items()}


def _entries_of(error_class: str) -> Sequence[_Entry]:
    return entries_by_condition().get(error_class, ())


@cache
def entries_by_condition() -> dict[str, list[_Entry]]:
    """Return the entries of each condition of ours, in their order."""
    entries: dict[str, list[_Entry]] = {}
    for head, lines in re.findall(r"^(\w.*)\n((?:    .*\n)*)", _ENTRIES, re.MULTILINE):
        names, _, statements = head.partition(" | ")
        condition, _, theirs = names.partition(" = ")
        other, _, sql_state = theirs.partition(" ")
        words = (word.partition("=") for word in shlex.split(lines))
        parameters = {name: text.replace("\\n", "\n") for name, _, text in words}
        entry = _Entry(other or None, sql_state or None, tuple(statements.split()), parameters)
        entries.setdefault(condition, []).append(entry)
    return entries

"""The condition, SQLSTATE, class and message text of every error, as data.

Each line without an indent has a condition, its SQLSTATE, the class of `exceptions` that it is
raised as, and the exceptions of PySpark that delta-spark raises there, without their ending
``Exception``; the error is an instance of all of them. The text below belongs to it, and to the
conditions directly above; it states the problem, its cause and the remedy. Names in braces are the
fields of the error; fields that are not in the text stand at the end of the line. Errors that
delta-spark has, too, use its condition and SQLSTATE, and contain the words by which programs
recognize its text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from string import Formatter
from typing import NamedTuple

_ENTRIES = """
DELTA_TABLE_NOT_FOUND 42P01 TableNotFoundError Analysis
    {path} is not a Delta table. {advice}.
DELTA_VERSION_NOT_FOUND 22003 VersionNotFoundError Analysis
    Cannot read version {version} of {path}: the log can only reconstruct versions {earliest} to
    {latest}. Use one of these.
DELTA_CANNOT_RESTORE_TABLE_VERSION 22003 VersionNotFoundError Analysis
    Cannot restore {path} to version {version}: the versions before its latest that can be read are
    {earliest} to {latest}. Use one of these.
DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER 22003 TimestampEarlierThanCommitRetentionError Analysis
    Cannot restore {path} to {timestamp}: the earliest commit that can be read is of {earliest}. Use
    that time or a later one.
DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER 22003 TimestampGreaterThanCommitError Analysis
    Cannot restore {path} to {timestamp}: the latest commit is of {latest}. Use an earlier time.
DELTA_CANNOT_RESTORE_FILES 42K03 TableError IllegalArgument
    Cannot restore {path} to version {version}: files of it cannot be used: {problems}. They were
    probably deleted by VACUUM; restore a newer version, or put them back.
DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT 22003 TableError IllegalArgument
    Cannot vacuum {path} with a retention period of {hours} hours: files that are this new may
    belong to writes in progress, and readers and time travel may need them. Use at least
    {least_hours} hours, set delta.deletedFileRetentionDuration, or, if nothing else uses the table,
    pass check_retention=False to sparkdelta.vacuum.
DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE 22003 TableError IllegalArgument
    Cannot vacuum {path} with a retention period of {hours} hours: it must be a number of hours of
    at least 0. Leave it out to use the table's.
DELTA_INVALID_INVENTORY_SCHEMA 42000 TableError Analysis
    Cannot use the inventory: {problem}. It needs the columns path STRING, length LONG, isDir
    BOOLEAN and modificationTime LONG (milliseconds).
DELTA_NO_COMMITS_FOUND KD006 TableError Analysis
    The log of {path} has a checkpoint but no commits, so the timestamps of its versions are
    unknown. Time travel by version instead of by timestamp.
DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION 42816 TimestampEarlierThanCommitRetentionError Analysis
    Cannot read {path} as of {timestamp}: the earliest version that the log can still reconstruct
    was committed at {earliest}. Use that time or a later one. A timestamp without a time zone is in
    UTC, and history() shows the session time zone.
DELTA_TIMESTAMP_GREATER_THAN_COMMIT 42816 TimestampGreaterThanCommitError Analysis
    Cannot read {path} as of {timestamp}: its latest version was committed at {latest}. Use that
    time or an earlier one. A timestamp without a time zone is in UTC, and history() shows the
    session time zone.
DELTA_TIMESTAMP_INVALID 42816 TableError Analysis
    The provided timestamp ({value}) cannot be converted to a valid timestamp. Pass a datetime or an
    ISO 8601 string such as 2024-01-31T12:00:00Z.
DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE 42604 TableError IllegalArgument
    Cannot read version {version}: it is not the number of a version. Write an integer.
DELTA_ILLEGAL_OPTION 42616 InvalidArgumentError Analysis IllegalArgument UnsupportedOperation
DELTA_INVALID_ARGUMENT_TYPE 42616 ArgumentTypeError
    Invalid value for {argument}: {problem}.
DELTA_UNKNOWN_ARGUMENT 42616 ArgumentTypeError
    {function}() has no argument {argument}. {suggestion}.
DELTA_STATEMENT_SYNTAX 42601 StatementSyntaxError Parse
    Cannot run the SQL statement, and nothing was done: {problem}, at line {line}, column {column}:
    {excerpt}.
DELTA_STATEMENT_NOT_SUPPORTED 0A000 TableError Parse UnsupportedOperation
    Cannot run the statement on Delta tables, as {statement} is not implemented; nothing was done,
    and README.md lists the statements that are.
DELTA_UNSUPPORTED_SOURCE 0AKDD TableError Analysis
    Cannot run {operation} by the view {view}, which does not have the rows of one Delta table.
    Name the table.
DELTA_UNEXPECTED_PARTIAL_SCAN KD00A TableError Analysis
    Cannot change {path} by the view {view}, which has only some of its rows. Name the table, and
    give the condition of the view in the statement.
DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION KD002 TableError Analysis
    Cannot change version {version} of {path}: only the latest version can be changed. Name the
    table without a version; RESTORE makes an earlier version the latest.
NOT_SUPPORTED_COMMAND_FOR_V2_TABLE 0A000 TableError Analysis
    {statement} is not supported for v2 tables, and nothing was done: the log of a Delta table has
    what it would compute. Leave it out; see DESCRIBE EXTENDED and DESCRIBE DETAIL.
DELTA_OPERATION_NOT_ALLOWED 0AKDC TableError Analysis
    Operation not allowed: `{operation}` is not supported for Delta tables, and nothing was done.
    DESCRIBE EXTENDED shows how the table is defined.
INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED 42601 TableError Analysis
    The partition command is invalid, and nothing was done. Table {table} does not support partition
    management, because its log has its partitions. Read or change their rows by a condition.
DELTA_INSERT_COLUMN_ARITY_MISMATCH 42802 TableError Analysis
    Cannot insert into {path}, and nothing was written: {expected} columns are to be filled, and the
    query has {given}. Name the columns after the table, or use BY NAME.
DELTA_SPARK_PRESENT 55000 TableError
    Cannot enable sparkdelta in this session: delta-spark's JAR is on its class path, and each of
    the two would see only some of the reads and writes. Start Spark without io.delta packages, or
    use sparkdelta's own functions.
DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS 42613 TableError Analysis
    Cannot time travel by both a version and a timestamp. Pass only one of them.
DELTA_TABLE_ALREADY_EXISTS 42P07 TableError Analysis
    Cannot create a table at {path}, and nothing was written: a table already exists there. Write
    with mode append or overwrite, or use createIfNotExists or createOrReplace.
DELTA_TABLE_LOCATION_MISMATCH 42613 InvalidArgumentError Analysis
    Cannot create table {table} at {location}: the table is there already, and its location is
    {path}. Leave the location out, or drop the table first.
DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE 42613 InvalidArgumentError Analysis
    Cannot create a table at two different locations, {path} and {location}. Leave the LOCATION
    out.
DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION 42601 TableError Analysis
    Cannot create a table at {path}, and nothing was written: the directory is not empty and has no
    Delta log. Use another location, or move the existing files away.
DELTA_CONVERT_NON_PARQUET_TABLE 0AKDC TableError Analysis
    Cannot convert {table}: it is a source of format {source}, and only directories of Parquet files
    can be converted. Read it with its own format and use write_delta.
DELTA_MISSING_PROVIDER_FOR_CONVERT 0AKDC TableError Analysis
    Cannot convert {identifier}: only directories of Parquet files can be converted. Write the
    identifier as parquet.`/path/to/directory`.
DELTA_EMPTY_DIRECTORY 42K03 TableError
    Cannot convert {directory}: there is no file in it, apart from hidden ones. Check the path, or
    create a table with DeltaTable.create.
DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS 22000 TableError
    Cannot convert {path} to a table that tracks rows without statistics, which give the number of
    rows. Collect statistics, or do not set delta.enableRowTracking.
DELTA_UNSUPPORTED_NON_EMPTY_CLONE 0AKDC TableError
    Cannot replace the table at {path} by a shallow clone, and nothing was written: it has files.
    Delete its rows first, clone with deep=True, or clone to another path.
DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS 22000 TableError UnsupportedOperation
    Cannot clone {path}, which tracks rows: the log does not say how many rows {file} has, and
    perhaps others. Collect the statistics of the source first.
DELTA_CANNOT_REPLACE_MISSING_TABLE 42P01 TableNotFoundError Analysis
    Cannot replace the table at {path}, and nothing was written: it cannot be found. Use
    createOrReplace or create.
DELTA_UNKNOWN_CONFIGURATION F0000 TableError Analysis
    Cannot set the property {property}: properties that begin with delta. are reserved for the
    protocol, and this one is unknown, not implemented here, or not for users to set. Remove
    it.{suggestion}
DELTA_CANNOT_RENAME_PATH 22KD1 TableError new_path
    Cannot rename {path}: it is a path, which has no name. Move the directory.
DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER 42613 TableError Analysis
    Cannot set the location of {path}, because it is a path. Name the table as the session catalog
    does.
DELTA_CREATE_TABLE_SCHEME_MISMATCH 42KD7 TableError Analysis
    Cannot give a name to the table at {path}, and nothing was done: it has other {differences} than
    the statement says. Write what DESCRIBE EXTENDED shows, or leave all clauses but LOCATION out.
DELTA_SET_LOCATION_SCHEMA_MISMATCH 42KD7 TableError Analysis original destination
    Cannot set the location of the table at {path}: the table at {location} has other columns or
    partition columns. Create another table for it.
DELTA_UNSUPPORTED_FEATURES_IN_CONFIG 56038 TableError
    Cannot set the property {property}: there is no such table feature, or it is not for users to
    add. Remove it.{suggestion}
DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED 42000 TableError Analysis
    Cannot cluster {path}, because it is partitioned by {columns}. Write its rows to a new table.
DELTA_CLUSTERING_WITH_PARTITION_PREDICATE 0A000 TableError UnsupportedOperation condition
    Cannot optimize a part of {path}, because it is a clustered table, which has no partitions.
    Leave the condition out.
DELTA_CLUSTERING_WITH_ZORDER_BY 42613 TableError Analysis
    Cannot order the rows of {path} by [{columns}], because it is a clustered table: its clustering
    columns order them. Leave these out, or change the clustering columns.
DELTA_OPTIMIZE_FULL_NOT_SUPPORTED 42601 TableError UnsupportedOperation
    Cannot cluster all of {path}, because it has no clustering columns. Leave full out, or set them
    by alter_table(...).cluster_by.
DELTA_UNSET_NON_EXISTENT_PROPERTY 42616 TableError Analysis
    Cannot unset the property {property} of {path}: the table does not have it. Check its name, or
    pass if_exists=True.
DELTA_ADD_CONSTRAINTS 0A000 TableError Analysis
    Cannot set constraint {name} as a property, because existing rows would not be checked. Use
    alter_table(...).add_constraint.
DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED 42000 TableError Analysis
    Cannot create a table with {property} and without clustering columns. Name columns with CLUSTER
    BY, or with clusterBy of a table builder.
DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED 42000 TableError Analysis
    Cannot add the clustering feature to {path} without clustering columns. Use
    alter_table(...).cluster_by.
DELTA_NO_START_FOR_CDC_READ 42601 TableError Analysis
    A read of changes has no start. Pass start_version or start_timestamp.
DELTA_MULTIPLE_CDC_BOUNDARY 42614 TableError Analysis
    The {bound} of a read of changes is given by both a version and a timestamp. Pass only one of
    them.
DELTA_INVALID_CDC_RANGE 22003 TableError IllegalArgument
    Cannot read the changes of {path} from version {start} to version {end}: the range ends before
    it starts. Exchange the bounds, or leave out the end to read up to the latest version.
DELTA_CDC_START_VERSION_AFTER_LATEST 22003 TableError IllegalArgument
    Cannot read the changes of {path} from version {start}: the latest version is {latest}. Start at
    that version or an earlier one.
DELTA_MISSING_CHANGE_DATA KD002 TableError Analysis
    Cannot read the changes of {path} from version {start} to version {end}:
    delta.enableChangeDataFeed is not true at version {version}, so that not all changes were
    recorded. Read a range in which it is true throughout.
DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE 0AKDC TableError UnsupportedOperation read_schema
    Cannot read the changes of {path} from version {start} to version {end} with the schema of
    version {schema_version}: version {version} has a schema that is not compatible with it, as
    columns were renamed, dropped or changed in between. Read the versions before and after the
    change separately.
DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA 0AKDC TableError UnsupportedOperation read_schema
    Cannot read the changes of {path} from version {start} to version {end} with the schema of
    version {schema_version}: the rows of version {version} have a schema that is not compatible
    with it, as columns were renamed, dropped or changed since. End the range before the change.
DELTA_UNSUPPORTED_OUTPUT_MODE 0AKDC TableError Analysis
    Cannot write a stream in output mode {mode}: a Delta table takes 'append' and 'complete'. Use
    one of these, or merge each batch with foreachBatch.
DELTA_STREAM_NOT_SUPPORTED 0A000 TableError
    Cannot use {verb}: {reason}. Use a classic session of Spark 4, or read versions as they come
    with read_delta and read_changes and write them with txn_app_id and txn_version.
DELTA_SPARK_MEMBER_NOT_FOUND 0A000 SparkMemberNotFoundError
    Spark {version} has no {member}, which sparkdelta needs to {purpose}. Upgrade sparkdelta, or use
    a version of Spark that its README lists.
DELTA_SPARK_METHOD_NOT_SUPPORTED 0A000 TableError
    Spark {version} calls {method}, which this version of sparkdelta does not implement. Upgrade
    sparkdelta, or use a version of Spark that its README lists.
DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET 42613 TableError IllegalArgument
    A stream can start at a version or at a time, not at both. Give one of them.
DELTA_REGEX_OPT_SYNTAX_ERROR 2201B TableError IllegalArgument
    exclude_regex is not a regular expression of Java: {regex}. Correct it.
DELTA_INVALID_SOURCE_OFFSET_FORMAT XXKDS TableError
    Cannot continue to read {path}: {offset} in the checkpoint is not an offset of a Delta table.
    Use the checkpoint of this query, or a new one.
DELTA_INVALID_SOURCE_VERSION XXKDS TableError
    Cannot continue to read {path}: the offset in the checkpoint has source version {version}, which
    no engine writes. Use the checkpoint of this query, or a new one.
DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION XXKDS TableError
    Cannot continue to read {path}: the offset in the checkpoint has source version {version}, of a
    newer engine. Continue with that engine, or use a new checkpoint.
DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE 55019 TableError
    Cannot continue to read {path}: its table has the id {new}, and the checkpoint is of a query
    that read the table {old}. The table was replaced, or the query changed. Use a new checkpoint.
DELTA_STREAM_OFFSET_WITHIN_CHANGES 0A000 TableError
    Cannot continue to read the changes of {path}: the offset in the checkpoint is within version
    {version}, and changes of a version are read as a whole. Let delta-spark finish that version
    first, or use a new checkpoint.
DELTA_SOURCE_IGNORE_DELETE 0A000 TableError UnsupportedOperation
    The stream of {path} cannot go on: version {version} deletes rows, of file {file} for example,
    and a stream reads only new rows. Set ignore_deletes to leave that out, or read_change_feed to
    read it.
DELTA_SOURCE_TABLE_IGNORE_CHANGES 0A000 TableError UnsupportedOperation
    The stream of {path} cannot go on: version {version} changes rows, of file {file} for example,
    and a stream reads only new rows. Set skip_change_commits to pass over such versions,
    ignore_changes to read rewritten rows again, or read_change_feed to read the changes.
DELTA_MISSING_FILES_UNEXPECTED_VERSION 42K03 TableError
    The stream of {path} cannot go on: it needs the commit of version {version}, and the next one in
    the log is {earliest}. The log was cleaned up after delta.logRetentionDuration. Use a new
    checkpoint, or set fail_on_data_loss=False to go on without what was lost.
DELTA_STREAMING_TRAILING_COMMIT_MISSING 42K03 TableError
    The stream of {path} cannot go on: a batch ends at version {version}, and the log ends at
    {latest}. Commits were deleted, or the table was replaced. Restore them, or use a new
    checkpoint.
DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE 42K03 MissingStreamSnapshotError
    The stream of {path} cannot go on: it was reading all rows of version {version}, which the log
    cannot reconstruct any more. Use a new checkpoint, and a longer delta.logRetentionDuration.
DELTA_SCHEMA_CHANGED_WITH_VERSION KD007 TableError
    The stream of {path} has to be started again: version {version} has the schema {new}, and the
    stream reads the table with that of version {read_version}, {old}. Call read_stream and start
    the query again. If that does not help, the change cannot be read across: use a new checkpoint.
DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS KD007 TableError
    The stream of {path} has to be started again: version {version} has the schema {new}, and the
    stream reads the table with that of version {read_version}, {old}. Call read_stream and start
    the query again. If that does not help, the change cannot be read across: use a new checkpoint,
    and start after version {version}.
DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS KD007 TableError Analysis
    Cannot read {path}: it has changed since the DataFrame or view was made, and {problem}. Make the
    DataFrame or view again.
DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG 42KD4 TableError UnsupportedOperation
    The stream of {path} cannot go on: columns were renamed, dropped or changed between version
    {version}, {new}, and version {read_version}, {old}, and schemas are not tracked. Use a new
    checkpoint, and start after the change.
DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA XXKDS TableError
    Cannot read the rows that a commit removed: its remove action of {path} has no partitionValues.
    The writer left them out; read a range without this version.
DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS 42616 TableError IllegalArgument
    Invalid options of an idempotent write: {problem}. Pass both txn_app_id (a string) and
    txn_version (an integer).
DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE 42613 TableError IllegalArgument
    Cannot overwrite the schema together with dynamic partition overwrite: the remaining partitions
    would have a different schema. Remove overwrite_schema or partition_overwrite_mode.
DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE 42613 TableError IllegalArgument
    Cannot combine replace_where with dynamic partition overwrite. Pass either replace_where or
    partition_overwrite_mode='dynamic'.
DELTA_DATA_CHANGE_FALSE 0AKDE TableError Analysis
    Cannot write to {path} with data_change=False, which declares that the write only rearranges
    existing data: {what}. Remove the option.

DELTA_UNSUPPORTED_FEATURES_FOR_READ 56038 ProtocolError
    Cannot read {path}: it requires reader table features that are not implemented here: {features}.
    Read it with an engine that supports them, or use that engine to drop the features.
DELTA_UNSUPPORTED_FEATURES_FOR_WRITE 56038 ProtocolError
    Cannot write {path}, and nothing was written: this library does not support {what} for tables
    with these features: {features} ({reasons}). Write with an engine that supports them, or use
    that engine to drop the features.
DELTA_INVALID_PROTOCOL_VERSION KD004 ProtocolError
    Cannot use {path}: it requires reader version {reader_version} and writer version
    {writer_version}, but this library implements reader versions 1 to 3 and writer versions 1 to 7.
    Upgrade to a newer release.
DELTA_INVALID_PROTOCOL KD004 ProtocolError
    The protocol action of {path} is invalid: {problem}. A faulty writer committed it; restore the
    table to a version before that commit.
DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED KD00G ProtocolError
    Cannot read {path} by its path: the table is managed by a catalog, and only the catalog knows
    its latest commits. Read it through an engine that is connected to that catalog.
DELTA_UNSUPPORTED_FORMAT 0AKDC ProtocolError
    Cannot use {path}: its metaData action gives {provider} as the format of the data files, and
    Delta Lake has Parquet only. Restore the table to a version before that commit.
DELTA_ICEBERG_COMPAT_VIOLATION KD00E ProtocolError UnsupportedOperation
    Cannot write the table, and nothing was written: it has Iceberg compatibility V{version}, and
    {problem} ({violation}). Change that, or write to a table without Iceberg compatibility.
DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA 0AKDC ProtocolError
    Cannot read the table: field {field} was changed from {from_type} to {to_type}, which type
    widening does not allow. Rewrite the data files with the new type using another engine.
DELTA_INVALID_COLUMN_MAPPING XXKDS ProtocolError
    The column mapping of the table is invalid: {problem}. A faulty writer committed it; restore the
    table to a version before that commit.
DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED 0A000 ProtocolError
    A table cannot have both delta.enableDeletionVectors and
    delta.compatibility.symlinkFormatManifest.enabled: readers of manifests do not know of deleted
    rows. Set one of them to false.
DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS 0A000 ProtocolError UnsupportedOperation
    Cannot generate symlink manifests of {path}: files of it have deletion vectors, and readers of
    manifests do not know of deleted rows. Set delta.enableDeletionVectors to false, and write these
    files again with REORG or optimize.
DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING 0AKDC ProtocolError UnsupportedOperation
    Cannot generate symlink manifests of {path}, which maps its columns: readers of manifests do not
    know the names of columns in its files. Write the rows to a table without column mapping.
DELTA_MODE_NOT_SUPPORTED 0AKDC ProtocolError IllegalArgument
    There is no mode {mode} of generate. Use symlink_format_manifest.
DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION 55000 ProtocolError
    {enabled} and {suspended} cannot both be true. Set one of them to false in the same statement.
DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE 0AKDC ProtocolError
    Cannot drop {feature}: it is not a known table feature. Check its name.
DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT 55000 ProtocolError
    Cannot drop {feature}, because {path} does not support it. Nothing has to be done.
DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE 0AKDC ProtocolError
    Cannot drop {feature}: of tables that have used it, files or old versions may still need it.
    Only {droppable} can be dropped here; for others, use an engine that can.
DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED 42000 ProtocolError
    Cannot truncate the history to drop {feature}, because old versions do not need it to be read.
    Drop it without truncateHistory.
DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY 42000 ProtocolError
    Cannot drop {property}, which is a table property, not a table feature. Unset it:
    alter_table(...).unset_properties.
DELTA_FEATURE_DROP_DEPENDENT_FEATURE 55000 ProtocolError
    Cannot drop {feature}, because other features of the table need it: {dependents}. Drop these
    first.
DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION 55000 ProtocolError
    Cannot drop checkpointProtection from {path} while earlier versions need features that the table
    no longer has. Delete these versions with it: truncateHistory=True.
DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD 22KD0 ProtocolError
    Cannot drop checkpointProtection from {path} yet, because the log still has versions before
    {version}, which need dropped features. Repeat this once they have been replaced for {retention}
    (delta.dropFeatureTruncateHistory.retentionDuration).
DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD 22KD0 ProtocolError
    The latest version of {path} no longer uses {feature}, but earlier versions do, so the protocol
    still has it. Repeat this once they have expired, after {retention}
    (delta.logRetentionDuration); with truncateHistory=True, after {short_retention}.
DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST 22KD0 ProtocolError
    Cannot drop {feature} from {path} yet, because versions in its log still use it. Repeat this
    once they have expired, after {retention} (delta.logRetentionDuration); with
    truncateHistory=True, after {short_retention}.
DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL 40000 ProtocolError
    Cannot drop {feature} from {path}, because another writer used it again meanwhile. Repeat this
    when no other writer alters or restores the table.
DELTA_FEATURE_DROP_CHECKPOINT_FAILED 22KD0 ProtocolError
    Cannot drop {feature} from {path}, because a checkpoint that hides earlier versions could not be
    written: {problem}. Repeat this; what is done stays done.
DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE 0AKDE ProtocolError Analysis
    Cannot drop checkConstraints, because the table has the constraints {constraints}. Drop them
    first: alter_table(...).drop_constraint.
DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE 0AKDC ProtocolError UnsupportedOperation
    Cannot change the column mapping mode from {before} to {after}: files of the table are written
    for {before}. Only none can be changed, to name; for any other mode write the rows to a new
    table.
DELTA_WRITE_NOT_IMPLEMENTED 0AKDC ProtocolError
    Cannot write rows to {path}, and nothing was written: the table requires writers to support what
    is not implemented here: {missing}. Write with an engine that supports it.

DELTA_SCHEMA_NOT_SET KD008 SchemaError Analysis
    The table {path} has no schema: its metaData action has no schemaString. Set the schema, or
    write data, with the engine that created the table.
DELTA_READ_TABLE_WITHOUT_COLUMNS 428GU SchemaError Analysis
    Cannot read {path}, because the table has no columns. Write rows to it with merge_schema.
DELTA_SCHEMA_NOT_PROVIDED 42908 SchemaError Analysis
    Cannot replace the table at {path}, and nothing was written: the table schema is not provided.
    Write the columns after the name, or a query after AS.
DELTA_INVALID_SCHEMA XXKDS SchemaError
    The schema of the table is invalid: {problem}. A faulty writer committed it; restore the table
    to a version before that commit.
DELTA_UNSUPPORTED_DATA_TYPES 0AKDC SchemaError Analysis
    Cannot use column {column}: its type {data_type} is not supported here, or not part of the Delta
    protocol. Read the table with the engine that wrote it; cast the column before you write it.
DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE 22005 SchemaError Analysis
    Nothing was written: column {column} has the type {data_type}, but VOID values within arrays and
    maps have no place in data files. Cast them, or change the column's type.
DELTA_CANNOT_WRITE_EMPTY_SCHEMA 428GU SchemaError Analysis
    Nothing was written: all of {column}, which has the type {data_type}, is of type VOID, so that
    data files would not contain it. Add a column of another type, or change the type of one.
DELTA_COLUMN_NOT_FOUND 42703 ColumnNotFoundError Analysis
    Column {column} not found. The most similar names in this version of the table are: {available}.
DELTA_PARTITION_COLUMN_NOT_FOUND 42703 SchemaError Analysis
    Partition column {column} not found in the columns {available}. Rows written to the table must
    contain it, even if only with nulls. If the table's own schema lacks it, a faulty writer
    committed the schema; restore the table to a version before that commit.
DELTA_PARTITION_COLUMN_CAST_FAILED 22525 InvalidPartitionValueError
    Partition column {column} has the value {value} in the log, which is not a valid {data_type}. A
    faulty writer committed the file; commit it again with a correct value.
DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME KD009 SchemaError Analysis
    Cannot convert a directory: its files must have the partition columns ({expected}), and {path}
    has ({found}). Give all partition columns in the order of the directories, or move the file
    away.
DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME KD009 SchemaError Analysis
    Cannot convert a directory: {path} has partition column {found} where {expected} is expected.
    Give the partition columns in the order of the directories.
DELTA_FAILED_CAST_PARTITION_VALUE 22018 SchemaError
    Cannot convert a directory: the value {value} of partition column {column} is not a valid
    {data_type}. Give another type for the column, or rename the directory.
DELTA_FAILED_MERGE_SCHEMA_FILE 42KDA SchemaError
    Cannot convert a directory: the schema of {file} does not fit that of other files: {problem}.
    Write the file again with the types of the others.
DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN 42621 SchemaError Analysis
    Cannot use the expression {expression} for generated column {name}, and nothing was written: it
    is not deterministic. Use a deterministic expression.
DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT 42621 SchemaError Analysis
    Cannot use CHECK constraint {name} ({expression}), and nothing was written: it is not
    deterministic. Use a deterministic expression.
DELTA_UDF_IN_GENERATED_COLUMN 42621 SchemaError Analysis
    Cannot use the expression {expression} for generated column {name}, and nothing was written: it
    contains a user-defined function, which other writers do not have. Use only Spark's built-in
    functions.
DELTA_UDF_IN_CHECK_CONSTRAINT 42621 SchemaError Analysis
    Cannot use CHECK constraint {name} ({expression}), and nothing was written: it contains a
    user-defined function, which other writers do not have. Use only Spark's built-in functions.
DELTA_AGGREGATE_IN_GENERATED_COLUMN 42621 SchemaError Analysis
    Cannot use the expression {expression} for generated column {name}, and nothing was written: it
    contains an aggregate function. Use an expression that depends only on the columns of one row.
DELTA_AGGREGATE_IN_CHECK_CONSTRAINT 42621 SchemaError Analysis
    Cannot use CHECK constraint {name} ({expression}), and nothing was written: it contains an
    aggregate function. Use an expression that depends only on the columns of one row.
DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN 42621 SchemaError Analysis
    Cannot use the expression {expression} for generated column {name}, and nothing was written: it
    contains a subquery, window function or generator, refers to a generated column, or depends on
    the current time or the session. Use an expression that depends only on the columns of one row.
DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT 42621 SchemaError Analysis
    Cannot use CHECK constraint {name} ({expression}), and nothing was written: it contains a
    subquery, window function or generator, or depends on the session. Use an expression that
    depends only on the columns of one row.
DELTA_NON_BOOLEAN_CHECK_CONSTRAINT 42621 SchemaError Analysis
    Cannot use CHECK constraint {name} ({expression}), and nothing was written: its type is
    {data_type}. Use a BOOLEAN expression.
DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH 42K09 SchemaError Analysis
    Cannot generate column {column}, and nothing was written: its type is {column_type}, but its
    expression has type {expression_type}. Change the type of the column, or cast the expression.
DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION 428FT SchemaError Analysis
    Cannot partition by {column}: {problem}. At least one column must not be a partition column.
DELTA_UNSUPPORTED_RENAME_COLUMN 0AKDC SchemaError Analysis
    Cannot rename a column of {path}, because its data files have columns of the same name. Enable
    column mapping first: alter_table(...).set_properties({{'delta.columnMapping.mode': 'name'}}).
DELTA_UNSUPPORTED_DROP_COLUMN 0AKDC SchemaError Analysis
    Cannot drop a column of {path}, because a later one of the same name would have its values.
    Enable column mapping first: alter_table(...).set_properties({{'delta.columnMapping.mode':
    'name'}}).
DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP 0AKDC UnsupportedColumnChangeError Analysis
    Cannot change column {column} from {before} to {after}: {problem}.
DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP 0AKDC SchemaError Analysis
    Cannot replace the columns of the table: {problem}.
DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN 0AKDC SchemaError Analysis
    Cannot drop {column}, because the table is partitioned by it. Write the rows to a new table.
DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN 0AKDC SchemaError Analysis
    Cannot drop {column}, because the table is clustered by it. Change that first.
DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA 0AKDC SchemaError Analysis schema
    Cannot drop {column}, because its table or struct has no other column. Add one first, or drop
    the struct.
DELTA_ADD_COLUMN_PARENT_NOT_STRUCT 42KD3 SchemaError Analysis name
    Cannot add a column to {column}, which is {data_type}. Only structs have fields; for those in
    arrays and maps, use the names element, key and value.
DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE 42K09 SchemaError Analysis
    Cannot alter column {column}, because generated column {name} ({expression}) uses it. Drop the
    generated column first.
DELTA_CONSTRAINT_DATA_TYPE_MISMATCH 42K09 SchemaError Analysis
    Column {column} has data type {column_type} and cannot be altered to data type {data_type}
    because this column is referenced by the following check constraint(s):
    {constraints}. Cast the values to {column_type}, or drop the constraints first.
DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH 42K09 SchemaError Analysis
    Column {column} has data type {column_type} and cannot be altered to data type {data_type}
    because this column is referenced by the following generated column(s):
    {generated_columns}. Cast the values to {column_type}.
DELTA_CONSTRAINT_ALREADY_EXISTS 42710 SchemaError Analysis
    There is already a constraint {name}: {expression}. Choose another name, or drop that one first.
DELTA_CONSTRAINT_DOES_NOT_EXIST 42704 SchemaError Analysis
    There is no constraint {name} of {path} to drop. Check its name in the table's properties, or
    pass if_exists=True.
DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN 429BQ SchemaError Analysis
    Column {column} is not an identity column, so it generates no values. Name one that does.
DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED 429BQ SchemaError Analysis
    Cannot replace the columns of {path}, because it has an identity column. Add, drop or change
    columns one by one.
DELTA_NON_PARTITION_COLUMN_REFERENCE 42P10 NonPartitionColumnReferenceError Analysis
    Predicate references non-partition column '{column}'. Only the partition columns may be
    referenced: [{available}], because the condition selects whole files of {path}. Leave it out.
DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE 42809 SchemaError Analysis
    Cannot show the partitions of {path}, because it has no partition columns.
DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN 42P10 SchemaError Analysis
    Cannot show the partitions of {path} by {column}, which is not a partition column. Leave it out;
    the partition columns are [{available}].
DELTA_ZORDERING_ON_PARTITION_COLUMN 42P10 SchemaError IllegalArgument
    {column} is a partition column. Z-Ordering can only be performed on data columns, because a file
    has one value of a partition column. Name data columns.
DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST 42703 SchemaError IllegalArgument
    Cannot order rows by {column}, because the table has no such column. Its columns are
    [{available}].
DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS KD00D SchemaError Analysis
    Cannot order rows by [{columns}], because files have no statistics of these columns, so that no
    query could skip one. Set delta.dataSkippingStatsColumns to have them.
DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES 0AKDC SchemaError Analysis
    {operation} is not supported for column {column} of type {data_type}: values of GEOMETRY and
    GEOGRAPHY have no order, no literals and no bounds. Leave the column out.
DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED 0AKDC SchemaError Analysis
    Nothing was written: a column of {data_type} could have values of several coordinate systems,
    which data files cannot store. Declare one, such as GEOMETRY(4326).
DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE 0AKDE ProtocolError Analysis
    Cannot drop the feature geospatial: the columns [{columns}] have geometry or geography types.
    Drop these columns first.
DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS 42711 SchemaError
    The table cannot have both columns named {columns} and the change data feed, which adds columns
    of these names. Rename or drop the columns.
DELTA_DUPLICATE_COLUMNS_FOUND 42711 SchemaError Analysis
    The table or the rows would have several columns named {columns} (column names are
    case-insensitive). Choose another name.
DELTA_RESERVED_COLUMN_NAME 42939 SchemaError
    Cannot read or write the column {column}: names that begin with {prefix} are reserved for
    columns that sparkdelta or Spark adds to rows. Use another name.
DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING 42K05 SchemaError Analysis
    Cannot remove column mapping from {path}, because files without it cannot have the column name
    {column}. Rename the column first: alter_table(...).rename_column.
DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES 42K05 InvalidColumnNameError Analysis
    Cannot write column {column}: its name is empty or contains a space, tab, line break or one of
    ,;{{}}()=, which are not allowed in data files. Rename the column.
DELTA_INVALID_PARTITION_COLUMN 42996 SchemaError Analysis
    Cannot partition by {column}: {problem}. Choose columns of the data that have a primitive type
    other than BINARY.
DELTA_METADATA_MISMATCH 42KDG SchemaError Analysis
    The rows do not match the table {path}, and nothing was written: {problem}. Change the rows, or
    write with merge_schema to add their new columns to the table.
DELTA_FAILED_TO_MERGE_FIELDS 22005 SchemaError Analysis
    The rows do not match the table, and nothing was written: column {column} has type {table_type}
    in the table and {row_type} in the rows. Cast it.
DELTA_UNIVERSAL_FORMAT_VIOLATION KD00E ProtocolError UnsupportedOperation
    Cannot enable Universal Format for {formats}: it needs a catalog and writers of these formats,
    which this library does not have. Leave delta.universalFormat.enabledFormats out, and let
    another engine convert the table.
CANNOT_UP_CAST_DATATYPE 42846 SchemaError Analysis
    Cannot up cast column {column} from {row_type} to {table_type}, and nothing was written: values
    may not fit, and spark.sql.storeAssignmentPolicy is STRICT. Cast them, or set it to ANSI.
DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED 0AKDC SchemaError Analysis
    The condition {condition} of {operation} is not deterministic. It is evaluated once to select
    files and again to select rows, and the results could differ. Write the value into a column
    first, and use that column.
DELTA_UNSUPPORTED_SUBQUERY 0AKDC SchemaError Analysis
    The condition {condition} of {operation} contains a subquery; only the columns of the row may be
    used. Run the subquery first, and use its result in the condition.
DELTA_INVALID_CONDITION 42000 InvalidConditionError Analysis
    Spark cannot use the condition {condition} ({spark_condition}): {problem} Write a condition of
    type BOOLEAN in Spark SQL, on columns of the table.
DELTA_MISSING_SET_COLUMN 42703 SchemaError Analysis
    Nothing was committed: a value is assigned to {column}, which the struct does not have. Its
    fields are: {available}.
DELTA_CONFLICT_SET_COLUMN 42701 SchemaError Analysis
    Nothing was committed: these assignments contradict each other, as they are to the same column,
    or to a column and to one of its fields: {columns}. Keep one of them.
DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT 0AKDC SchemaError Analysis
    Nothing was committed: only fields of structs can be assigned, and {column} is of type
    {data_type}. Assign a value to all of {column}, for instance with transform().
DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION 42846 SchemaError Analysis
    Nothing was committed: column {column} is {column_type}, and a value of type {value_type} cannot
    be converted to it. Cast it; a struct must have the same fields, unless the schema evolves.
DELTA_INVALID_ASSIGNMENT 42000 SchemaError Analysis
    Nothing was committed: Spark cannot use {expression} as the value of column {column}
    ({spark_condition}): {problem} Write an expression in Spark SQL, on columns of the row.
DELTA_MERGE_MISSING_WHEN 42601 SchemaError Parse
    Nothing was committed: the merge into {path} has no clause. Add one before execute(), such as
    whenMatchedUpdateAll().
DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION 42601 SchemaError Parse
    Nothing was committed: WHEN MATCHED clause {number} of the merge has no condition, so those
    after it would never apply. Give it a condition, or make it the last one.
DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION 42601 SchemaError Parse
    Nothing was committed: WHEN NOT MATCHED clause {number} of the merge has no condition, so those
    after it would never apply. Give it a condition, or make it the last one.
DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION 42601 SchemaError Parse
    Nothing was committed: WHEN NOT MATCHED BY SOURCE clause {number} of the merge has no condition,
    so those after it would never apply. Give it a condition, or make it the last one.
DELTA_MERGE_UNRESOLVED_EXPRESSION 42601 ColumnNotFoundError Analysis
    Nothing was committed: {clause} of the merge cannot use column {column}. It can use these:
    {available}.
DELTA_DUPLICATE_COLUMNS_ON_INSERT 42701 SchemaError Analysis
    Nothing was committed: an insert clause of the merge gives several values to the same column:
    {columns}. Keep one of them.
DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION 0AKDC SchemaError Analysis
    Nothing was committed: an insert clause of the merge assigns {column}, which is a field of a
    struct. Give a value to the whole column, for instance with named_struct().
DELTA_MERGE_ADD_VOID_COLUMN 42K09 SchemaError Analysis
    Nothing was committed: the merge would add column {column}, which is of type VOID in the source.
    Cast it to another type.
DELTA_AGGREGATION_NOT_SUPPORTED 42903 SchemaError Analysis
    The condition {condition} of {operation} contains an aggregate function, window function or
    generator; only the columns of the row may be used. Compute the value first, and use it in the
    condition.
DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE 42K09 SchemaError Analysis column constraints
    Constraint {name} ({expression}) does not match the columns of the table: {problem}. A column
    that it uses is missing or has another type. Keep the column as it is, or drop the constraint
    first.

DELTA_NEW_CHECK_CONSTRAINT_VIOLATION 23512 ConstraintError Analysis
    Cannot add the constraint {expression}, because it is false or null for {num_rows} of the rows
    of {path}, among them {rows}. Delete or update these rows first.
DELTA_NOT_NULL_CONSTRAINT_VIOLATED 23502 ConstraintError
    NOT NULL constraint violated for column: {column}. A row has no value for it, and nothing was
    committed. Provide a value.
DELTA_NULLS_IN_NOT_NULL_COLUMN 23502 ConstraintError
    Cannot read the table: a row of {file} has a null in {column}, which is NOT NULL, as another
    writer did not check it. Make the column nullable (ALTER TABLE ... ALTER COLUMN ... DROP NOT
    NULL), or delete such rows.
DELTA_MISSING_NOT_NULL_COLUMN_VALUE 23502 ConstraintError Analysis
    Nothing was written: the rows lack {columns}, which are NOT NULL in the table and have no
    default. Add the missing columns.
DELTA_VIOLATE_CONSTRAINT_WITH_VALUES 23001 ConstraintError
    Nothing was committed: a row violates CHECK constraint {constraint} ({expression}): {row}.
    Correct or remove such rows.
DELTA_CAST_OVERFLOW_IN_TABLE_WRITE 22003 ConstraintError Arithmetic
    Nothing was committed: column {column} is {table_type}, and a row has a {row_type} value that is
    out of range. Correct the value, or use try_cast to write null instead.
DELTA_CAST_INVALID_INPUT 22018 ConstraintError NumberFormat DateTime SparkRuntime
    Nothing was committed: column {column} is {table_type}, and a {row_type} value of a row cannot
    be converted to it: '{value}'. Correct the value, or use try_cast to write null instead.
DELTA_EXCEED_CHAR_VARCHAR_LIMIT 22001 ConstraintError
    Nothing was committed: column {column} is {data_type}, and a row has a longer string in
    '{value}'. Shorten it.
DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED 42808 ConstraintError Analysis
    Nothing was written: column {column} is GENERATED ALWAYS AS IDENTITY, but the rows contain
    values for it. Remove the column from the rows.
DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED 42808 ConstraintError Analysis
    Nothing was committed: column {column} is an identity column, whose values cannot be changed. Do
    not assign it.
DELTA_REPLACE_WHERE_MISMATCH 44000 ConstraintError Analysis
    Nothing was committed: a row does not match the condition {where} of replace_where. Filter the
    rows by that condition.

DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE 21506 CommitError UnsupportedOperation
    Nothing was committed to {path}: several rows of the source match the same row of the table, for
    {num_rows} rows, so it is not known which of them applies. Some of the keys: {keys}. Merge a
    source with one row per key, or add to the condition.
DELTA_NUM_RECORDS_MISMATCH XXKDS CommitError
    {operation} of {path} wrote {found} rows instead of {expected}, and nothing was committed: the
    condition gives other results each time, or a data file changed meanwhile. Use a condition that
    is deterministic, or report this error.
DELTA_INVALID_COMMIT XXKDS CommitError
    Cannot commit to {path}, and nothing was committed: {problem}. Readers could not derive a
    consistent state from such a commit; correct the staged actions.
DELTA_CANNOT_MODIFY_APPEND_ONLY 42809 CommitError UnsupportedOperation
    Cannot update or delete rows of {path}: the table is append-only. To allow changes, set its
    property delta.appendOnly to false.
DELTA_WRITE_FAILED 58030 CommitError
    Cannot write the rows to {path}, and nothing was committed: {problem}. {remedy}.
DELTA_COMMIT_OUTCOME_UNKNOWN 58030 CommitOutcomeUnknownError
    It is unknown whether version {version} of {path} was committed: the storage failed ({problem})
    and does not respond. Check the table history; the commit is yours if its txnId is {txn_id}.
DELTA_MAX_COMMIT_RETRIES_EXCEEDED 40000 MaxCommitRetriesExceededError
    Cannot commit to {path}, and nothing was committed: other writers won all {attempts} attempts,
    most recently for version {version}. Try again when there are fewer concurrent writers.
DELTA_CONCURRENT_WRITE 2D521 ConcurrentWriteException
DELTA_PROTOCOL_CHANGED 2D521 ProtocolChangedException
DELTA_CONCURRENT_APPEND 2D521 ConcurrentAppendException
DELTA_CONCURRENT_DELETE_READ 2D521 ConcurrentDeleteReadException
DELTA_CONCURRENT_DELETE_DELETE 2D521 ConcurrentDeleteDeleteException
    Cannot commit to {path}, and nothing was committed: concurrent commit {version} ({operation})
    {conflict} ({subject}). Retry the operation on the latest version; rows to be written that were
    read from this table must be read again.
DELTA_CONCURRENT_TRANSACTION 2D521 ConcurrentTransactionException
    Cannot commit to {path}, and nothing was committed: concurrent commit {version} ({operation})
    {conflict} ({subject}). Check whether your data has already been committed before you retry.
DELTA_METADATA_CHANGED 2D521 MetadataChangedException
    Cannot commit to {path}, and nothing was committed: concurrent commit {version} ({operation})
    {conflict} ({subject}). Retry with data that matches the current schema and properties of the
    table.

DELTA_FAILED_READ_FILE_FOOTER KD001 StorageError
    Cannot read the footer of {path}: {problem}. Every file that is not hidden must be a Parquet
    file with types that Spark reads; move other files away.
DELTA_STORAGE_ERROR 58030 StorageError
    Cannot access {path}: {problem}. Check the path, credentials and permissions.
DELTA_VERSIONS_NOT_CONTIGUOUS KD00C VersionsNotContiguousError versions
    Cannot load version {version_to_load} of {path}: the commits between versions {start} and {end}
    are missing; they were deleted manually or never copied. Restore the files in _delta_log.
DELTA_TRUNCATED_TRANSACTION_LOG 42K03 TruncatedTransactionLogError
    Cannot reconstruct version {version} of {path}: the log neither begins with version 0 nor has a
    complete checkpoint, because files were deleted manually. Restore the files in _delta_log.
DELTA_LOG_FILE_NOT_FOUND 42K03 LogFileNotFoundError
    Cannot load version {version} of {path}: log file {file} was deleted after the log was listed,
    by metadata cleanup or manually. Load the table again.
DELTA_MISSING_PART_FILES 42KD6 StorageError
    The checkpoint of version {version} is incomplete: parts of it were deleted or never written,
    and no other checkpoint can replace it. Restore the missing part files.
DELTA_STATE_RECOVER_ERROR XXKDS StorageError
    Cannot reconstruct version {version} of {path}: its log has no {what} action. If files in
    _delta_log were deleted manually, restore them.
DELTA_MALFORMED_LOG_FILE XXKDS MalformedLogFileError
    Cannot read the log of {path} at version {version}: {problem}. The file is damaged or
    incomplete. Restore it from a backup, or read an earlier version; sparkdelta.verify shows which
    files of the log disagree, and sparkdelta.repair puts a damaged checkpoint aside if the commits
    have the same state.
DELTA_MISSING_COMMIT_INFO KD004 StorageError
    Commit {version} of {path} has no commitInfo and therefore no in-commit timestamp, although the
    table requires one. Read by version instead of by timestamp.
DELTA_MISSING_COMMIT_TIMESTAMP KD004 StorageError
    The commitInfo of commit {version} of {path} has no inCommitTimestamp, although the table
    requires one. Read by version instead of by timestamp.
DELTA_FILE_NOT_FOUND 42K03 StorageError
    Cannot read version {version}: data file {file} does not exist; it was probably deleted by
    VACUUM, or manually. Read a newer version, or restore the file.
DELTA_DATA_FILE_NOT_READ XXKDS StorageError
    Cannot read all of version {version}: Spark skipped these data files in its scan: {files}.
    Repeat the read with sparkdelta, or copy the files to names that Spark accepts.
DELTA_DATA_FILE_UNSUPPORTED 0AKDC StorageError
    Cannot read column {column} of {file} in a distributed scan: {problem}. Spark's own Parquet
    reader supports more, but is used only for lists of files that fit on the driver. Select fewer
    files, or leave out the column.
DELTA_FILE_SYSTEM_NOT_FOUND 58030 StorageError
    Cannot access {path}: Spark has no file system for {scheme}:. {remedy}.
DELTA_STORE_NOT_WRITABLE 0AKDC StoreNotWritableError
    Cannot write the log of {path}, and nothing was written. {reason}. {remedy}.
DELTA_PATH_OUTSIDE_TABLE 58030 StorageError
    Cannot access {path} as a file of the table at {table_root}, and nothing was changed: it is
    outside the table's root, possibly by a symbolic link, or in its log. Use a path below the root,
    or the storage's own tools for files elsewhere.
DELTA_CHECKPOINT_SNAPSHOT_MISMATCH XXKDS CheckpointMismatchError
    No checkpoint of version {version} of {path} was published: it would contain {found} {what}, but
    the version checksum or the table state says {expected}. Find out which of the two is wrong
    before you try again; the table can be read as before.
DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH XXKDS DeletionVectorError
    Deletion vector {deletion_vector} is damaged: {problem}. Its file changed after it was written;
    restore the file from a backup.
DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH XXKDS DeletionVectorError
    Deletion vector {deletion_vector} does not match its descriptor: {problem}. Its file or the
    commit is wrong; read a version of the table before that commit.
DELTA_DELETION_VECTOR_SIZE_MISMATCH XXKDS DeletionVectorError
    Deletion vector {deletion_vector} has the wrong size: {problem}. Its file was truncated or the
    commit is wrong; restore the file from a backup.
DELTA_DELETION_VECTOR_INVALID_FORMAT XXKDS DeletionVectorError
    Deletion vector {deletion_vector} cannot be decoded: {problem}. Its file is damaged or has
    another format; restore the file from a backup.
DELTA_DELETION_VECTOR_INVALID_ROW_INDEX XXKDS StorageError
    Row {row_index} of data file {file} cannot be deleted: the table's log says that the file has
    {num_records} rows. numRecords in its statistics is wrong, or the file changed after it was
    written; check the table with verify.
DELTA_DRIVER_READ_TOO_LARGE 54000 DriverReadTooLargeError
    Cannot collect {what} to the driver: it has {rows} rows, and the limit is {bound}. Select less,
    or use a DataFrame that stays on the cluster.

DELTA_PYTHON_WORKER_NOT_USABLE 58030 DeltaError
    Cannot run Python functions on Spark's workers: {problem}. Set the environment variable
    PYSPARK_PYTHON, before Spark starts, to a Python of the driver's version that has numpy, pandas
    and pyarrow.
"""  # noqa: E501 - names of conditions and classes


class Condition(NamedTuple):
    """An error condition: one entry of the data.

    Attributes
    ----------
    spark_classes
        The exceptions of PySpark that an error of this condition is, too.
    """

    sql_state: str
    class_name: str
    spark_classes: tuple[str, ...]
    other_fields: tuple[str, ...]
    text: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that an error of this condition has."""
        names = (name for _, name, _, _ in Formatter().parse(self.text) if name)
        return (*dict.fromkeys(names), *self.other_fields)

    def fields_of(self, message: str) -> dict[str, str]:
        """Return the fields that a message of this condition has, as texts."""
        pattern, names = "", set[str]()
        for before, name, _, _ in Formatter().parse(self.text):
            pattern += re.escape(before)
            if name:
                pattern += f"(?P={name})" if name in names else f"(?P<{name}>.*?)"
                names.add(name)
        found = re.fullmatch(pattern, message, re.DOTALL)
        return found.groupdict() if found else {}


def _conditions() -> dict[str, Condition]:
    conditions = {}
    for heads, text in re.findall(r"((?:^\w.*\n)+)((?:^    .*\n)+)", _ENTRIES, re.MULTILINE):
        for head in heads.splitlines():
            name, sql_state, class_name, *others = head.split()
            spark_classes = tuple(f"{each}Exception" for each in others if each[0].isupper())
            fields = tuple(each for each in others if each[0].islower())
            text = " ".join(text.split())
            conditions[name] = Condition(sql_state, class_name, spark_classes, fields, text)
    return conditions


CONDITIONS = _conditions()


def text_of(value: object) -> str:
    """Return a field of an error as its message shows it."""
    if value is None:
        return "unknown"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(map(str, value))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return str(value)

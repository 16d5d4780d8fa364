"""What the errors say: for every error class its SQLSTATE and its text.

A text gives the problem, the cause and the remedy; the names in braces are fields of the error.
Error classes and SQLSTATEs are those of delta-spark where it has the same error.
"""

from __future__ import annotations

_CONFLICT = (
    "Cannot commit to {path}, and nothing was committed. Version {version} ({operation}) was "
    "committed meanwhile: {finding} ({subject}). "
)
_AGAIN = (
    "Try again: the operation will then see that commit. Where it writes rows that were read from "
    "this table, read them anew."
)

CONDITIONS: dict[str, tuple[str, str]] = {
    "DELTA_TABLE_NOT_FOUND": (
        "42P01",
        (
            "There is no Delta table at {path}. It has no _delta_log directory with commits or "
            "checkpoints. Check the path."
        ),
    ),
    "DELTA_VERSION_NOT_FOUND": (
        "22003",
        (
            "Cannot read version {version} of {path}. It is not among the versions that the log "
            "can still reconstruct. Ask for a version from {earliest} to {latest}."
        ),
    ),
    "DELTA_NO_COMMITS_FOUND": (
        "KD006",
        (
            "The log of {path} has a checkpoint and no commit, so nobody knows when its versions "
            "were made. Ask for a version instead of a time."
        ),
    ),
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION": (
        "42816",
        (
            "Cannot read {path} as of {timestamp}. The earliest version that the log can still "
            "reconstruct was committed at {earliest}. Ask for that time or a later one."
        ),
    ),
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT": (
        "42816",
        (
            "Cannot read {path} as of {timestamp}. Its latest version was committed at {latest}. "
            "Ask for that time or an earlier one."
        ),
    ),
    "DELTA_TIMESTAMP_INVALID": (
        "42816",
        (
            "{value} is not a timestamp. It has no form that is understood. Give a datetime or an "
            "ISO 8601 text such as 2024-01-31T12:00:00Z."
        ),
    ),
    "DELTA_ILLEGAL_OPTION": (
        "42616",
        "Invalid value for {argument}: {problem}.",
    ),
    "DELTA_UNKNOWN_ARGUMENT": (
        "42616",
        "{function}() has no argument {argument}. {suggestion}.",
    ),
    "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS": (
        "42613",
        (
            "Cannot travel in time in two ways at once. Both a version and a timestamp are given. "
            "Leave one of them out."
        ),
    ),
    "DELTA_UNSUPPORTED_FEATURES_FOR_READ": (
        "56038",
        (
            "Cannot read {path}. It requires reader table features that are not implemented here: "
            "{features}. Read it with an engine that has them, or drop the features there."
        ),
    ),
    "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE": (
        "56038",
        (
            "Cannot write {path}, and nothing was written. It requires table features for which "
            "{what} are not implemented here: {features} ({reasons}). Write with an engine that "
            "has them, or drop the features there."
        ),
    ),
    "DELTA_INVALID_PROTOCOL_VERSION": (
        "KD004",
        (
            "Cannot use {path}. It requires reader version {reader_version} and writer version "
            "{writer_version}, and readers 1 to 3 and writers 1 to 7 are implemented. Upgrade to "
            "a newer release."
        ),
    ),
    "DELTA_INVALID_PROTOCOL": (
        "KD004",
        (
            "The protocol action of {path} is invalid. {problem}. A faulty writer committed it: "
            "restore the table to a version before that commit."
        ),
    ),
    "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED": (
        "KD00G",
        (
            "Cannot read {path} by its path. The table is managed by a catalog, which alone knows "
            "its latest commits. Read it through an engine that is connected to that catalog."
        ),
    ),
    "DELTA_ICEBERG_COMPAT_VIOLATION": (
        "KD00E",
        (
            "Cannot write the table, and nothing was written. It has Iceberg compatibility "
            "V{version}, and {problem} ({violation}). Change that, or write a table without "
            "Iceberg compatibility."
        ),
    ),
    "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA": (
        "0AKDC",
        (
            "Cannot read the table. Field {field} was changed from {from_type} to {to_type}, which "
            "type widening does not allow. Rewrite the data files with the new type elsewhere."
        ),
    ),
    "DELTA_INVALID_COLUMN_MAPPING": (
        "XXKDS",
        (
            "The column mapping of the table is broken: {problem}. A faulty writer committed the "
            "schema. Restore the table to a version before that commit."
        ),
    ),
    "DELTA_SCHEMA_NOT_SET": (
        "KD008",
        (
            "The table {path} has no schema. Its metaData action has no schemaString. Write data "
            "into the table, or set its schema, with the engine that made it."
        ),
    ),
    "DELTA_INVALID_SCHEMA": (
        "XXKDS",
        (
            "The schema of the table is invalid: {problem}. A faulty writer committed it. Restore "
            "the table to a version before that commit."
        ),
    ),
    "DELTA_UNSUPPORTED_DATA_TYPES": (
        "0AKDC",
        (
            "Cannot use column {column}. Its type {data_type} is not a type of the Delta protocol "
            "that is implemented here. Read the table with the engine that wrote it; cast rows "
            "before they are written."
        ),
    ),
    "DELTA_COLUMN_NOT_FOUND": (
        "42703",
        (
            "There is no column {column}. The table has: {available}. Name one of these; another "
            "version of a table may have other columns."
        ),
    ),
    "DELTA_PARTITION_COLUMN_NOT_FOUND": (
        "42703",
        (
            "Partition column {column} is missing among the columns {available}. Rows that are "
            "written to the table must have it, if only with nulls. Where the table's own schema "
            "lacks it, a faulty writer committed that: restore a version before."
        ),
    ),
    "DELTA_PARTITION_COLUMN_CAST_FAILED": (
        "22525",
        (
            "Partition column {column} has the value {value} in the log. It is not a {data_type}. "
            "A faulty writer committed the file: commit it again with a right value."
        ),
    ),
    "DELTA_INVALID_COMMIT": (
        "XXKDS",
        (
            "Cannot commit to {path}, and nothing was committed: {problem}. No reader could make "
            "one state of it. Whoever staged the actions must mend them."
        ),
    ),
    "DELTA_CANNOT_MODIFY_APPEND_ONLY": (
        "42809",
        (
            "Cannot change or delete rows of {path}. The table only takes appends. Set its "
            "property delta.appendOnly to false if it shall change."
        ),
    ),
    "DELTA_COMMIT_OUTCOME_UNKNOWN": (
        "58030",
        (
            "It is unknown whether version {version} of {path} was committed: the storage failed "
            "({problem}) and does not answer. Look at the history: the commit is yours if its "
            "txnId is {txn_id}."
        ),
    ),
    "DELTA_MAX_COMMIT_RETRIES_EXCEEDED": (
        "40000",
        (
            "Cannot commit to {path}, and nothing was committed. Others were first {attempts} "
            "times, version {version} being the last that was tried. Try again when fewer write."
        ),
    ),
    "DELTA_CONCURRENT_WRITE": (
        "2D521",
        f"{_CONFLICT}{_AGAIN}",
    ),
    "DELTA_CONCURRENT_TRANSACTION": (
        "2D521",
        f"{_CONFLICT}Look whether what you commit is there already, then try again.",
    ),
    "DELTA_METADATA_CHANGED": (
        "2D521",
        f"{_CONFLICT}Try again with data that fits the table as it is now.",
    ),
    "DELTA_PROTOCOL_CHANGED": (
        "2D521",
        f"{_CONFLICT}{_AGAIN}",
    ),
    "DELTA_CONCURRENT_APPEND": (
        "2D521",
        f"{_CONFLICT}{_AGAIN}",
    ),
    "DELTA_CONCURRENT_DELETE_READ": (
        "2D521",
        f"{_CONFLICT}{_AGAIN}",
    ),
    "DELTA_CONCURRENT_DELETE_DELETE": (
        "2D521",
        f"{_CONFLICT}{_AGAIN}",
    ),
    "DELTA_TABLE_ALREADY_EXISTS": (
        "42P07",
        (
            "Cannot make a table at {path}, and nothing was written. There is one already. Write "
            "with mode append or overwrite, or use createIfNotExists or createOrReplace."
        ),
    ),
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION": (
        "42601",
        (
            "Cannot make a table at {path}, and nothing was written. The directory is not empty, "
            "and has no log of a table. Give another location, or move away what is there."
        ),
    ),
    "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN": (
        "42621",
        (
            "Cannot generate column {name} as {expression}, and nothing was written. It is not "
            "the same each time. Use an expression the same for a row whenever it is computed."
        ),
    ),
    "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT": (
        "42621",
        (
            "Cannot check constraint {name}, {expression}, and nothing was written. It is not the"
            " same each time. Use an expression the same for a row whenever it is computed."
        ),
    ),
    "DELTA_UDF_IN_GENERATED_COLUMN": (
        "42621",
        (
            "Cannot generate column {name} as {expression}, and nothing was written. It has a "
            "function of a user, which other writers do not know. Use an expression of functions "
            "that Spark has by itself."
        ),
    ),
    "DELTA_UDF_IN_CHECK_CONSTRAINT": (
        "42621",
        (
            "Cannot check constraint {name}, {expression}, and nothing was written. It has a "
            "function of a user, which other writers do not know. Use an expression of functions "
            "that Spark has by itself."
        ),
    ),
    "DELTA_AGGREGATE_IN_GENERATED_COLUMN": (
        "42621",
        (
            "Cannot generate column {name} as {expression}, and nothing was written. It has an "
            "aggregate, which is not of one row. Use an expression of one row's own values."
        ),
    ),
    "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT": (
        "42621",
        (
            "Cannot check constraint {name}, {expression}, and nothing was written. It has an "
            "aggregate, which is not of one row. Use an expression of one row's own values."
        ),
    ),
    "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN": (
        "42621",
        (
            "Cannot generate column {name} as {expression}, and nothing was written. It has a "
            "subquery, a window or a generator, or asks for a moment or a session. Use an "
            "expression of one row's own values."
        ),
    ),
    "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT": (
        "42621",
        (
            "Cannot check constraint {name}, {expression}, and nothing was written. It has a "
            "subquery, a window or a generator, or asks for a session. Use an expression of one "
            "row's own values."
        ),
    ),
    "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT": (
        "42621",
        (
            "Cannot check constraint {name}, {expression}, and nothing was written. Its type is "
            "{data_type}. Use a condition."
        ),
    ),
    "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH": (
        "42K09",
        (
            "Cannot generate column {column}, and nothing was written. Its type is {column_type}, "
            "that of its expression {expression_type}. Declare it so, or cast the expression."
        ),
    ),
    "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION": (
        "428FT",
        "Cannot partition by {column}: {problem}. Leave a column that files can hold.",
    ),
    "DELTA_CANNOT_REPLACE_MISSING_TABLE": (
        "42P01",
        (
            "Cannot replace the table at {path}, and nothing was written. There is none. Use "
            "createOrReplace or create."
        ),
    ),
    "DELTA_UNKNOWN_CONFIGURATION": (
        "F0000",
        (
            "Cannot make a table with the property {property}. Properties that begin with delta. "
            "are the protocol's, and this one is not known, is not implemented here, or is not for "
            "users to set. Leave it out.{suggestion}"
        ),
    ),
    "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS": (
        "42616",
        (
            "Invalid options of an idempotent write: {problem}. Give txn_app_id, a text, and "
            "txn_version, a whole number, both."
        ),
    ),
    "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE": (
        "42613",
        (
            "Cannot overwrite the schema and only some partitions. The partitions that stay would "
            "have another schema. Leave out overwrite_schema, or the partition overwrite mode."
        ),
    ),
    "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE": (
        "42613",
        (
            "Cannot replace rows both by a condition and by their partitions. Pass either "
            "replace_where or partition_overwrite_mode='dynamic'."
        ),
    ),
    "DELTA_DATA_CHANGE_FALSE": (
        "0AKDE",
        (
            "Cannot write to {path} with data_change=False, which says that no row changes: "
            "{what}. Leave the option out."
        ),
    ),
    "DELTA_WRITE_NOT_IMPLEMENTED": (
        "0AKDC",
        (
            "Cannot write rows to {path}, and nothing was written. The table asks of its writers "
            "what is not implemented here: {missing}. Write with an engine that has it."
        ),
    ),
    "DELTA_DUPLICATE_COLUMNS_FOUND": (
        "42711",
        (
            "Cannot write the rows. Several of their columns are named {columns}, but for upper "
            "and lower case. Rename them."
        ),
    ),
    "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES": (
        "42K05",
        (
            "Cannot write column {column}. Its name is empty or has one of the characters space ,"
            " ; {{ }} ( ) = tab or line break, which data files cannot have. Rename it."
        ),
    ),
    "DELTA_INVALID_PARTITION_COLUMN": (
        "42996",
        ("Cannot partition by {column}: {problem}. Name columns of the rows with a simple type."),
    ),
    "DELTA_METADATA_MISMATCH": (
        "42KDG",
        (
            "The rows do not fit the table {path}, and nothing was written: {problem}. Change the "
            "rows; where the table shall have new columns of theirs, write with merge_schema."
        ),
    ),
    "DELTA_FAILED_TO_MERGE_FIELDS": (
        "22005",
        (
            "The rows do not fit the table, and nothing was written. Column {column} is "
            "{table_type}, and the rows have {row_type}. Cast it."
        ),
    ),
    "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED": (
        "0AKDC",
        (
            "The condition {condition} of {operation} is not deterministic. It is evaluated once "
            "to choose files and again to keep rows, and would not give the same both times. Write "
            "the value into a column first, and name that."
        ),
    ),
    "DELTA_UNSUPPORTED_SUBQUERY": (
        "0AKDC",
        (
            "The condition {condition} of {operation} has a subquery. It must be known from the "
            "row's own values. Run the subquery first, and put its result into the condition."
        ),
    ),
    "DELTA_AGGREGATION_NOT_SUPPORTED": (
        "42903",
        (
            "The condition {condition} of {operation} has an aggregate, a window function or a "
            "generator. It must be known from the row's own values. Compute the value first, and "
            "put it into the condition."
        ),
    ),
    "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE": (
        "42K09",
        (
            "Constraint {name} ({expression}) does not fit the columns of the table: {problem}. A "
            "column that it names is missing, or has another type. Keep the column as it is, or "
            "drop the constraint first."
        ),
    ),
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": (
        "23502",
        (
            "Nothing was committed. Column {column}, which is NOT NULL, has no value in a row. "
            "Fill it."
        ),
    ),
    "DELTA_MISSING_NOT_NULL_COLUMN_VALUE": (
        "23502",
        (
            "The rows lack {columns}, which the table has as NOT NULL and without a default, and "
            "nothing was written. Add what is missing to the rows."
        ),
    ),
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": (
        "23001",
        (
            "Nothing was committed. CHECK constraint {constraint} ({expression}) is not true of a "
            "row: {row}. Change or leave out such rows."
        ),
    ),
    "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE": (
        "22003",
        (
            "Nothing was committed. Column {column} is {table_type}, and a row has a {row_type} "
            "that is out of its range. Change the value; try_cast makes null of it."
        ),
    ),
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT": (
        "22001",
        (
            "Nothing was committed. Column {column} is {data_type}, and a row has a longer text. "
            "Cut it."
        ),
    ),
    "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED": (
        "42808",
        (
            "Nothing was written. The values of column {column} are GENERATED ALWAYS AS IDENTITY, "
            "and the rows bring their own. Leave the column out."
        ),
    ),
    "DELTA_REPLACE_WHERE_MISMATCH": (
        "44000",
        (
            "Nothing was committed. A row does not fulfil the condition {where}, so it would not "
            "replace what is deleted. Filter the rows."
        ),
    ),
    "DELTA_STORAGE_ERROR": (
        "58030",
        "Cannot access {path}. {problem}. Check the path, credentials and permissions.",
    ),
    "DELTA_VERSIONS_NOT_CONTIGUOUS": (
        "KD00C",
        (
            "Cannot load version {version_to_load} of {path}. The commits between versions {start} "
            "and {end} are gone, deleted by hand or never copied. Bring their files back to "
            "_delta_log."
        ),
    ),
    "DELTA_TRUNCATED_TRANSACTION_LOG": (
        "42K03",
        (
            "Cannot reconstruct version {version} of {path}. The log neither begins with version 0 "
            "nor has a complete checkpoint: files were deleted by hand. Bring them back to "
            "_delta_log."
        ),
    ),
    "DELTA_LOG_FILE_NOT_FOUND": (
        "42K03",
        (
            "Cannot load version {version} of {path}. The log file {file} is gone: metadata "
            "cleanup or somebody deleted it after the version was looked up. Load the table again."
        ),
    ),
    "DELTA_MISSING_PART_FILES": (
        "42KD6",
        (
            "The checkpoint of version {version} is incomplete. Parts of it were deleted or never "
            "written, and no other checkpoint can replace it. Bring the part files back."
        ),
    ),
    "DELTA_STATE_RECOVER_ERROR": (
        "XXKDS",
        (
            "Cannot reconstruct version {version} of {path}. Its log has no {what} action. If "
            "files in _delta_log were deleted by hand, bring them back."
        ),
    ),
    "DELTA_MALFORMED_LOG_FILE": (
        "XXKDS",
        (
            "Cannot read the log of {path} at version {version}: {problem}. The file is damaged or "
            "was written in part. Bring back a good copy, or read an earlier version."
        ),
    ),
    "DELTA_MISSING_COMMIT_INFO": (
        "KD004",
        (
            "Commit {version} of {path} has no commitInfo. Its in-commit timestamp, which the "
            "table promises, is therefore unknown. Read by version instead of by timestamp."
        ),
    ),
    "DELTA_MISSING_COMMIT_TIMESTAMP": (
        "KD004",
        (
            "The commitInfo of commit {version} of {path} has no inCommitTimestamp. The table "
            "promises one in every commit. Read by version instead of by timestamp."
        ),
    ),
    "DELTA_FILE_NOT_FOUND": (
        "42K03",
        (
            "Cannot read version {version}. Its data file {file} is gone, as likely as not deleted "
            "by VACUUM, or by hand. Read a newer version, or bring the file back."
        ),
    ),
    "DELTA_DATA_FILE_NOT_READ": (
        "XXKDS",
        (
            "Cannot read version {version} in full. Spark left these data files out of its scan: "
            "{files}. Read with sparkdelta again, or copy the files to names that Spark accepts."
        ),
    ),
    "DELTA_DATA_FILE_UNSUPPORTED": (
        "0AKDC",
        (
            "Cannot read column {column} of {file} in a scan that executors do by themselves: "
            "{problem}. Spark's own reader, which has more means, takes a list of files that fits "
            "the driver. Select fewer files, or leave the column out."
        ),
    ),
    "DELTA_STORE_NOT_WRITABLE": (
        "0AKDC",
        "Cannot write the log of {path}, and nothing was written. {reason}. {remedy}.",
    ),
    "DELTA_CHECKPOINT_SNAPSHOT_MISMATCH": (
        "XXKDS",
        (
            "No checkpoint of version {version} of {path} was published. It would have {found} "
            "{what}, and its version checksum or state says {expected}. Look for the wrong one of "
            "the two before the next attempt; the table reads as before."
        ),
    ),
    "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH": (
        "XXKDS",
        (
            "Deletion vector {deletion_vector} is damaged: {problem}. Its file changed after it "
            "was written. Bring back a good copy of the file."
        ),
    ),
    "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH": (
        "XXKDS",
        (
            "Deletion vector {deletion_vector} does not fit its descriptor: {problem}. Its file or "
            "the commit is wrong. Read a version of the table before that commit."
        ),
    ),
    "DELTA_DELETION_VECTOR_SIZE_MISMATCH": (
        "XXKDS",
        (
            "Deletion vector {deletion_vector} does not have its size: {problem}. Its file was cut "
            "off or the commit is wrong. Bring back a good copy of the file."
        ),
    ),
    "DELTA_DELETION_VECTOR_INVALID_FORMAT": (
        "XXKDS",
        (
            "Deletion vector {deletion_vector} cannot be decoded: {problem}. Its file is damaged "
            "or follows another format. Bring back a good copy of the file."
        ),
    ),
    "DELTA_DRIVER_READ_TOO_LARGE": (
        "54000",
        (
            "Refused to bring {what} to the driver. It has {rows} rows, and the bound is {bound}. "
            "Select less, or use a DataFrame that stays in the cluster."
        ),
    ),
}

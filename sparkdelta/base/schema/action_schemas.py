"""Spark types of the protocol's actions in commit files and checkpoints."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

STRING_MAP = MapType(StringType(), StringType())


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, data_type) for name, data_type in fields.items()])


DELETION_VECTOR = _struct(
    storageType=StringType(),
    pathOrInlineDv=StringType(),
    offset=IntegerType(),
    sizeInBytes=IntegerType(),
    cardinality=LongType(),
)
"""PROTOCOL.md#deletion-vector-descriptor-schema"""

ADD = _struct(
    path=StringType(),
    partitionValues=STRING_MAP,
    size=LongType(),
    modificationTime=LongType(),
    dataChange=BooleanType(),
    stats=StringType(),
    tags=STRING_MAP,
    deletionVector=DELETION_VECTOR,
    baseRowId=LongType(),
    defaultRowCommitVersion=LongType(),
    clusteringProvider=StringType(),
)
"""PROTOCOL.md#add-file-and-remove-file"""

REMOVE = _struct(
    path=StringType(),
    deletionTimestamp=LongType(),
    dataChange=BooleanType(),
    extendedFileMetadata=BooleanType(),
    partitionValues=STRING_MAP,
    size=LongType(),
    deletionVector=DELETION_VECTOR,
    baseRowId=LongType(),
    defaultRowCommitVersion=LongType(),
)
"""PROTOCOL.md#add-file-and-remove-file, without `stats` and `tags`, which replay does not need in a
tombstone
"""

CDC = _struct(
    path=StringType(),
    partitionValues=STRING_MAP,
    size=LongType(),
    dataChange=BooleanType(),
    tags=STRING_MAP,
)
"""PROTOCOL.md#add-cdc-file"""

CHANGES = _struct(
    add=ADD,
    remove=StructType([*REMOVE.fields, StructField("stats", StringType())]),
    cdc=CDC,
)
"""The actions that show which rows a commit changed (PROTOCOL.md#add-cdc-file)."""

FILE_REFERENCES = _struct(
    add=StructType([ADD[name] for name in ("path", "deletionVector")]),
    remove=StructType(
        [REMOVE[name] for name in ("path", "deletionTimestamp", "size", "deletionVector")]
    ),
)
"""The fields of adds and removes that name files, and size and time of the removed ones
(PROTOCOL.md#add-file-and-remove-file). Other fields are not checked where only these are parsed.
"""

METADATA = _struct(
    id=StringType(),
    name=StringType(),
    description=StringType(),
    format=_struct(provider=StringType(), options=STRING_MAP),
    schemaString=StringType(),
    partitionColumns=ArrayType(StringType()),
    createdTime=LongType(),
    configuration=STRING_MAP,
)
"""PROTOCOL.md#change-metadata"""

PROTOCOL = _struct(
    minReaderVersion=IntegerType(),
    minWriterVersion=IntegerType(),
    readerFeatures=ArrayType(StringType()),
    writerFeatures=ArrayType(StringType()),
)
"""PROTOCOL.md#protocol-evolution"""

TXN = _struct(appId=StringType(), version=LongType(), lastUpdated=LongType())
"""PROTOCOL.md#transaction-identifiers"""

DOMAIN_METADATA = _struct(domain=StringType(), configuration=StringType(), removed=BooleanType())
"""PROTOCOL.md#domain-metadata"""

SIDECAR = _struct(
    path=StringType(), sizeInBytes=LongType(), modificationTime=LongType(), tags=STRING_MAP
)
"""PROTOCOL.md#sidecar-file-information"""

CHECKPOINT_METADATA = _struct(version=LongType(), tags=STRING_MAP)
"""PROTOCOL.md#checkpoint-metadata"""

ACTIONS = _struct(
    add=ADD,
    remove=REMOVE,
    metaData=METADATA,
    protocol=PROTOCOL,
    txn=TXN,
    domainMetadata=DOMAIN_METADATA,
    sidecar=SIDECAR,
)
"""The actions that take part in log replay, each in its own column as in a checkpoint. Actions and
fields not listed here are ignored (PROTOCOL.md#protocol-evolution).
"""

COMMIT_INFO = _struct(
    timestamp=LongType(),
    inCommitTimestamp=LongType(),
    userId=StringType(),
    userName=StringType(),
    operation=StringType(),
    operationParameters=STRING_MAP,
    job=_struct(
        jobId=StringType(),
        jobName=StringType(),
        jobRunId=StringType(),
        runId=StringType(),
        jobOwnerId=StringType(),
        triggerType=StringType(),
    ),
    notebook=_struct(notebookId=StringType()),
    clusterId=StringType(),
    readVersion=LongType(),
    isolationLevel=StringType(),
    isBlindAppend=BooleanType(),
    operationMetrics=STRING_MAP,
    userMetadata=StringType(),
    engineInfo=StringType(),
)
"""PROTOCOL.md#commit-provenance-information: the fields that delta-spark shows in the table's
history.
"""


def actions(*names: str) -> StructType:
    """Return the named columns of `ACTIONS`, in its order."""
    return StructType([field for field in ACTIONS.fields if field.name in names])

"""Lines of a commit, and what no commit may hold."""

import json

import pytest

from sparkdelta.base.protocol.action_lines import action_line, json_line
from sparkdelta.base.protocol.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    TransactionIdentifier,
)
from sparkdelta.base.protocol.commit_info import CommitInfo, commit_info_line
from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile, file_key
from sparkdelta.base.protocol.isolation_levels import (
    IsolationLevel,
    commit_isolation_level,
    table_isolation_level,
)
from sparkdelta.base.protocol.row_ids import (
    high_water_mark,
    high_water_mark_domain,
    with_row_ids,
)
from sparkdelta.exceptions import InvalidArgumentError, MalformedLogFileError
from sparkdelta.table.commit.staged_commit_rules import (
    StagedActions,
    check_actions,
    check_allowed,
)
from sparkdelta.table.log.commit_timestamp_rules import next_in_commit_timestamp
from tests.support.errors import raises

VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
ADD = AddFile("a%20b", {"p": None}, 7, 8, True, '{"numRecords":2}', deletion_vector=VECTOR)
REMOVE = RemoveFile("a", 9, False, True, {"p": "1"}, 7)


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        (Protocol(1, 2), {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
        (
            Protocol(3, 7, ("x",), ("x", "y")),
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": ["x"],
                    "writerFeatures": ["x", "y"],
                }
            },
        ),
        (
            Metadata("i", "n", schema_string="{}", partition_columns=("p",), created_time=1),
            {
                "metaData": {
                    "id": "i",
                    "name": "n",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": "{}",
                    "partitionColumns": ["p"],
                    "configuration": {},
                    "createdTime": 1,
                }
            },
        ),
        (TransactionIdentifier("a", 1, 2), {"txn": {"appId": "a", "version": 1, "lastUpdated": 2}}),
        (
            DomainMetadata("d", "{}"),
            {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        ),
        (
            ADD,
            {
                "add": {
                    "path": "a%20b",
                    "partitionValues": {"p": None},
                    "size": 7,
                    "modificationTime": 8,
                    "dataChange": True,
                    "stats": '{"numRecords":2}',
                    "deletionVector": {
                        "storageType": "u",
                        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
                        "offset": 4,
                        "sizeInBytes": 40,
                        "cardinality": 6,
                    },
                }
            },
        ),
        (
            REMOVE,
            {
                "remove": {
                    "path": "a",
                    "deletionTimestamp": 9,
                    "dataChange": False,
                    "extendedFileMetadata": True,
                    "partitionValues": {"p": "1"},
                    "size": 7,
                }
            },
        ),
    ],
)
def test_an_action_is_one_line_and_comes_back(action, wanted):
    """ "Actions" """
    line = action_line(action)
    assert "\n" not in line
    assert json.loads(line) == wanted
    [document] = wanted.values()
    assert type(action).from_dict(document) == action


def test_lines_escape_what_would_break_them():
    text = 'a\nb\r\u2028"\\ü'
    line = json_line("commitInfo", {"userMetadata": text})
    assert "\n" not in line
    assert "\r" not in line
    assert json.loads(line)["commitInfo"]["userMetadata"] == text
    with pytest.raises(ValueError):
        json_line("x", {"y": float("nan")})


def test_a_commit_info_begins_with_its_timestamp():
    info = CommitInfo(5, 6, "WRITE", {"mode": "Append"}, 3, "Serializable", True, txn_id="t")
    document = json.loads(commit_info_line(info))["commitInfo"]
    assert next(iter(document)) == "inCommitTimestamp"
    assert document["operationParameters"] == {"mode": "Append"}
    assert (document["readVersion"], document["isBlindAppend"], document["txnId"]) == (3, True, "t")
    assert "userMetadata" not in document
    assert "readVersion" not in json.loads(commit_info_line(CommitInfo()))["commitInfo"]


@pytest.mark.parametrize(
    "staged",
    [
        StagedActions(protocols=(Protocol(1, 2), Protocol(1, 2))),
        StagedActions(metadata=(Metadata("a"), Metadata("a"))),
        StagedActions(transactions=(TransactionIdentifier("a", 1), TransactionIdentifier("a", 2))),
        StagedActions(domains=(DomainMetadata("a", "1"), DomainMetadata("a", "1", True))),
        StagedActions(adds=(ADD, ADD)),
        StagedActions(removes=(REMOVE, REMOVE)),
        StagedActions(adds=(AddFile("a", {}, 1, 1, True),), removes=(REMOVE,)),
        StagedActions(removes=(REMOVE, RemoveFile("/t/%61", 1, True), RemoveFile("file:///t/a", 1,
                                                                                 True))),
    ],
)  # fmt: skip
def test_contradicting_actions_are_refused(staged):
    """ "Action Reconciliation" """
    with raises("DELTA_INVALID_COMMIT"):
        check_actions(staged, path="file:/t")


def test_distinct_actions_are_accepted():
    one = StagedActions(
        protocols=(Protocol(1, 2),),
        metadata=(Metadata("a"),),
        transactions=(TransactionIdentifier("a", 1), TransactionIdentifier("b", 1)),
        domains=(DomainMetadata("a", "1"), DomainMetadata("b", "1")),
        adds=(AddFile("a", {}, 1, 1, True, deletion_vector=VECTOR),),
        removes=(REMOVE, RemoveFile("b", 1, True)),
    )
    check_actions(one, path="file:/t")
    assert file_key(one.adds[0], "file:/t")[1] == VECTOR.unique_id


APPEND_ONLY = Metadata("i", configuration={"delta.appendOnly": "true"})


def test_append_only_tables_keep_their_rows():
    """ "Append-only Tables": rearranging is allowed."""
    args = {"metadata": APPEND_ONLY, "path": "/t"}
    gone = StagedActions(removes=(RemoveFile("a", 1, True),))
    with raises("DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        check_allowed(gone, protocol=Protocol(1, 2), **args)
    check_allowed(gone, protocol=Protocol(1, 1), **args)  # which does not know the property
    check_allowed(gone, protocol=Protocol(1, 7, None, ()), **args)
    check_allowed(StagedActions(removes=(REMOVE,)), protocol=Protocol(1, 2), **args)
    check_allowed(StagedActions(adds=(AddFile("a", {}, 1, 1, True),)), protocol=Protocol(1, 2),
                  **args)  # fmt: skip


@pytest.mark.parametrize(
    ("staged", "feature"),
    [
        (StagedActions(domains=(DomainMetadata("d", ""),)), "domainMetadata"),
        (StagedActions(adds=(ADD,)), "deletionVectors"),
    ],
)
def test_actions_need_their_feature(staged, feature):
    args = {"metadata": Metadata("i"), "path": "/t"}
    with raises("DELTA_INVALID_COMMIT", match=feature):
        check_allowed(staged, protocol=Protocol(3, 7, (), ()), **args)
    features = (feature,)
    reader = features if feature == "deletionVectors" else ()
    check_allowed(staged, protocol=Protocol(3, 7, reader, features), **args)


def test_tables_of_unknown_features():
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"):
        check_allowed(
            StagedActions(), protocol=Protocol(1, 7, None, ("x",)), metadata=Metadata(""), path="/t"
        )


@pytest.mark.parametrize(
    ("now", "previous", "wanted"), [(10, None, 10), (10, 5, 10), (10, 10, 11), (10, 99, 100)]
)
def test_in_commit_timestamps_increase(now, previous, wanted):
    """ "Writer Requirements for In-Commit Timestamps" """
    assert next_in_commit_timestamp(now, previous) == wanted


@pytest.mark.parametrize("mark", [-1, 0, 41])
def test_row_ids_begin_above_the_mark(mark):
    """ "Writer Requirements for Row Tracking" """
    kept = AddFile("k", {}, 1, 1, False, base_row_id=3, default_row_commit_version=2)
    adds, new = with_row_ids([ADD, kept, ADD], mark=mark, version=9, path="/t")
    assert [add.base_row_id for add in adds] == [mark + 1, 3, mark + 3]
    assert [add.default_row_commit_version for add in adds] == [9, 2, 9]
    assert new == mark + 4
    assert high_water_mark(high_water_mark_domain(new), path="/t", version=9) == new


@pytest.mark.parametrize("stats", [None, "", "{}", '{"numRecords":"2"}', "[1]", "x", "[" * 100_000])
def test_row_ids_need_the_number_of_rows(stats):
    with raises("DELTA_INVALID_COMMIT"):
        with_row_ids([AddFile("a", {}, 1, 1, True, stats)], mark=0, version=1, path="/t")


def test_marks():
    def mark(text, removed=False):
        domain = DomainMetadata("delta.rowTracking", text, removed)
        return high_water_mark(domain, path="/t", version=1)

    assert high_water_mark(None, path="/t", version=1) == -1
    assert mark('{"rowIdHighWaterMark":9,"domainName":"delta.rowTracking"}') == 9
    assert mark('{"highWaterMark":9}') == 9
    assert mark('{"rowIdHighWaterMark":9}', removed=True) == -1
    for text in ("{}", "", "[]", "{", '{"rowIdHighWaterMark":"9"}', "[" * 100_000):
        with pytest.raises(MalformedLogFileError):
            mark(text)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, IsolationLevel.SERIALIZABLE),
        ("Serializable", IsolationLevel.SERIALIZABLE),
        ("serializable", IsolationLevel.SERIALIZABLE),
        ("WriteSerializable", IsolationLevel.WRITE_SERIALIZABLE),
    ],
)
def test_the_level_of_a_table(value, wanted):
    configuration = {} if value is None else {"delta.isolationLevel": value}
    assert table_isolation_level(configuration) is wanted


@pytest.mark.parametrize("value", ["SnapshotIsolation", "", "x"])
def test_levels_that_no_table_has(value):
    with pytest.raises(InvalidArgumentError):
        table_isolation_level({"delta.isolationLevel": value})


@pytest.mark.parametrize("table", [IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE])
@pytest.mark.parametrize("files", [True, False])
@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("operation", [True, False])
def test_only_rearranged_files_are_isolated_less(table, files, data, operation):
    level = commit_isolation_level(
        table, only_files=files, data_changes=data, operation_changes_data=operation
    )
    strict = table is IsolationLevel.WRITE_SERIALIZABLE and operation
    assert level is (IsolationLevel.SNAPSHOT if files and not data and not strict else table)

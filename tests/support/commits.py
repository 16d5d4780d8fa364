"""Commits without Spark: staged actions on a log that begins with one protocol and metaData."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from sparkdelta.base.protocol.actions import Metadata, Protocol
from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.log_files import LogFileKind, parse_log_file
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.table.commit.committer import Committed, Committer, PreparedCommit, ReadState
from sparkdelta.table.commit.conflict_detection import DriverConflictDetector, parse_commit
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions

SCHEMA = '{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}}]}'
APPEND = Operation("WRITE", {"mode": "Append", "partitionBy": "[]"}, is_blind_append=True)
NOTHING_READ = ReadSet()
PROTOCOL = Protocol(1, 2)
CREATE = Operation("CREATE TABLE")


def metadata(configuration: Mapping[str, str] | None = None) -> Metadata:
    """Metadata of a table with one column."""
    return Metadata("id", schema_string=SCHEMA, configuration=configuration or {})


def add(name: str) -> AddFile:
    """A file of one row."""
    return AddFile(name, {}, 1, 1, True, '{"numRecords":1}')


def create(
    store: LogStore,
    configuration: Mapping[str, str] | None = None,
    protocol: Protocol = PROTOCOL,
    **options: object,
) -> ReadState:
    """Commit version 0."""
    staged = StagedActions(protocols=(protocol,), metadata=(metadata(configuration),))
    commit(store, PreparedCommit(CREATE, staged), ReadState(), **options)
    return latest(store)


def latest(store: LogStore) -> ReadState:
    """The read_state that a transaction would read now, from the whole log."""
    read_state = ReadState()
    for entry in store.list_from("0"):
        file = parse_log_file(entry.name)
        if file is None or file.kind is not LogFileKind.COMMIT:
            continue
        [data] = store.read([entry.name])
        found = parse_commit(data, file.version, with_files=False, path=store.table_root)
        timestamp = found.commit_info.get("inCommitTimestamp")
        read_state = ReadState(
            file.version,
            found.protocol or read_state.protocol,
            found.metadata or read_state.metadata,
            timestamp if isinstance(timestamp, int) else entry.modification_time_ms,
        )
    return read_state


def commit(
    store: LogStore,
    prepared: PreparedCommit,
    read_state: ReadState,
    read: ReadSet = NOTHING_READ,
    **options: object,
) -> Committed:
    """Commit as `Transaction` does where all is values."""
    committer = Committer(store, **options)
    return committer.commit(prepared, read_state, lambda: DriverConflictDetector(store, read))


def append(store: LogStore, read_state: ReadState, *names: str, **options: object) -> Committed:
    """Add files blindly."""
    staged = StagedActions(adds=tuple(map(add, names)))
    return commit(store, PreparedCommit(APPEND, staged), read_state, **options)


if __name__ == "__main__":  # root, writer, number of commits: a process of its own
    root, writer, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    log = LocalLogStore(root)
    start = latest(log)
    for number in range(count):  # from old read_state on purpose: every other commit is looked at
        append(log, start, f"{writer}-{number}")

"""Tests of the conflicts between a transaction and one that came first, by their operations and the
isolation level.
"""

import json
from dataclasses import dataclass, field, replace

import pytest

from sparkdelta.base.predicates.predicate_rules import Column, Comparison, Literal
from sparkdelta.base.protocol.action_lines import action_line
from sparkdelta.base.protocol.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    TransactionIdentifier,
)
from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile, file_key
from sparkdelta.base.protocol.isolation_levels import IsolationLevel, commit_isolation_level
from sparkdelta.exceptions import (
    CommitError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from sparkdelta.table.commit.conflict_rules import (
    RULES,
    UNBACKFILL,
    Conflict,
    ReadSet,
    WinningCommit,
    check_conflicts,
    file_conflicts,
    table_conflicts,
)
from sparkdelta.table.commit.staged_commit_rules import StagedActions

SERIALIZABLE = IsolationLevel.SERIALIZABLE
WRITE_SERIALIZABLE = IsolationLevel.WRITE_SERIALIZABLE
SNAPSHOT = IsolationLevel.SNAPSHOT
ROOT = "file:/t"
TYPES = {"p": ("p", "integer")}


def where(p):
    return Comparison("=", Column(("p",)), Literal(p, "int"))


def add(name, p, data_change=True, vector=None):
    return AddFile(name, {"p": str(p)}, 1, 1, data_change, deletion_vector=vector)


def remove(name, data_change=True, vector=None):
    return RemoveFile(name, 1, data_change, deletion_vector=vector)


@dataclass
class Case:
    """An operation on a table of the files a (p = 1) and b (p = 2)."""

    staged: StagedActions
    read: ReadSet = field(default_factory=ReadSet)
    is_blind: bool = False


def read(*files, predicates=(), whole=False):
    keys = frozenset((name, None) for name in files)
    return ReadSet(predicates=tuple(predicates), files=keys, whole_table=whole)


OPERATIONS = {
    "append": Case(StagedActions(adds=(add("n1", 1),)), is_blind=True),
    "insert from itself": Case(
        StagedActions(adds=(add("n2", 1),)), read("a", predicates=[where(1)])
    ),
    "overwrite": Case(
        StagedActions(adds=(add("n3", 1),), removes=(remove("a"), remove("b"))), read(whole=True)
    ),
    "replaceWhere p=1": Case(
        StagedActions(adds=(add("n4", 1),), removes=(remove("a"),)),
        read("a", predicates=[where(1)]),
    ),
    "delete p=1": Case(StagedActions(removes=(remove("a"),)), read("a", predicates=[where(1)])),
    "update p=2": Case(
        StagedActions(adds=(add("n5", 2),), removes=(remove("b"),)),
        read("b", predicates=[where(2)]),
    ),
    "merge": Case(
        StagedActions(adds=(add("n6", 1),), removes=(remove("a"),)), read("a", "b", whole=True)
    ),
    "optimize p=1": Case(
        StagedActions(adds=(add("n7", 1, False),), removes=(remove("a", False),)),
        read("a", predicates=[where(1)]),
    ),
    "metadata": Case(StagedActions(metadata=(Metadata("id"),))),
    "protocol": Case(StagedActions(protocols=(Protocol(1, 2),))),
    "txn": Case(
        StagedActions(transactions=(TransactionIdentifier("x", 1),), adds=(add("n8", 1),)),
        ReadSet(app_ids=frozenset("x")),
        is_blind=True,
    ),
    "domain": Case(StagedActions(domains=(DomainMetadata("d", "{}"),))),
}
ERRORS = {
    "P": ProtocolChangedException,
    "M": MetadataChangedException,
    "A": ConcurrentAppendException,
    "R": ConcurrentDeleteReadException,
    "D": ConcurrentDeleteDeleteException,
    "T": ConcurrentTransactionException,
}

# A row for the later operation; a letter for each that was committed first, in the same order:
#                              append, insert from itself, overwrite, replaceWhere, delete, update,
#                              merge, optimize, metadata, protocol, txn, domain
MATRIX = {
    SERIALIZABLE: {
        "append": "              ........MP..",
        "insert from itself": "  AAAAR.AAMPA.",
        "overwrite": "           AAAARAAAMPA.",
        "replaceWhere p=1": "    AAAAR.AAMPA.",
        "delete p=1": "          AAAAR.AAMPA.",
        "update p=2": "          ..R..A..MP..",
        "merge": "               AAAARAAAMPA.",
        "optimize p=1": "        ..RRR.RRMP..",
        "metadata": "            ........MP..",
        "protocol": "            ........MP..",
        "txn": "                 ........MPT.",
        "domain": "              ........MP.T",
    },
    WRITE_SERIALIZABLE: {
        "append": "              ........MP..",
        "insert from itself": "  .AAAR.AAMP..",
        "overwrite": "           .AAARAAAMP..",
        "replaceWhere p=1": "    .AAAR.AAMP..",
        "delete p=1": "          .AAAR.AAMP..",
        "update p=2": "          ..R..A..MP..",
        "merge": "               .AAARAAAMP..",
        "optimize p=1": "        ..RRR.RRMP..",
        "metadata": "            ........MP..",
        "protocol": "            ........MP..",
        "txn": "                 ........MPT.",
        "domain": "              ........MP.T",
    },
}


def run(mine, winner, table_level):
    """The letter of the error that one operation gets after another, or a dot for none."""
    case, first = OPERATIONS[mine], OPERATIONS[winner]
    staged = case.staged
    level = commit_isolation_level(
        table_level,
        only_files=staged.has_only_files,
        data_changes=staged.changes_data,
        operation_changes_data=mine != "optimize p=1",
    )
    won = WinningCommit(
        version=7,
        protocol=next(iter(first.staged.protocols), None),
        metadata=next(iter(first.staged.metadata), None),
        transactions=first.staged.transactions,
        domains=first.staged.domains,
        commit_info={"isBlindAppend": first.is_blind, "operation": winner},
        adds=first.staged.adds,
        removes=first.staged.removes,
    )
    domains = frozenset(d.domain for d in staged.domains)
    conflicts = {
        **table_conflicts(won, app_ids=case.read.app_ids, domains=domains),
        **file_conflicts(
            won,
            read=case.read,
            removes=frozenset(file_key(r, ROOT) for r in staged.removes),
            partition_types=TYPES,
            table_root=ROOT,
        ),
    }
    try:
        check_conflicts(
            conflicts, level, winner=won, changes_metadata=bool(staged.metadata), path=ROOT
        )
    except DeltaConcurrentModificationException as error:
        return next(letter for letter, leaf in ERRORS.items() if type(error) is leaf)
    return "."


@pytest.mark.parametrize("level", MATRIX)
@pytest.mark.parametrize("mine", OPERATIONS)
def test_which_operations_can_follow(mine, level):
    assert len(OPERATIONS) == 12
    outcomes = "".join(run(mine, winner, level) for winner in OPERATIONS)
    assert outcomes == MATRIX[level][mine].strip()


def findings_of(case, **winner):
    won = WinningCommit(version=7, **winner)
    return file_conflicts(
        won,
        read=case.read,
        removes=frozenset(file_key(r, ROOT) for r in case.staged.removes),
        partition_types=TYPES,
        table_root=ROOT,
    )


APPENDED = {"adds": (add("x", 1),), "commit_info": {"isBlindAppend": True}}


@pytest.mark.parametrize(
    ("conflict", "levels"),
    [
        (Conflict.CHANGED_PROTOCOL, IsolationLevel),
        (Conflict.CHANGED_METADATA, IsolationLevel),
        (Conflict.ADDED_WHERE_READ, (SERIALIZABLE, WRITE_SERIALIZABLE)),
        (Conflict.APPENDED_WHERE_READ, (SERIALIZABLE,)),
        (Conflict.REMOVED_WHAT_WAS_READ, IsolationLevel),
        (Conflict.REMOVED_WHAT_IS_REMOVED, IsolationLevel),
        (Conflict.ADVANCED_APPLICATION, IsolationLevel),
        (Conflict.CHANGED_DOMAIN, IsolationLevel),
    ],
)
def test_at_which_levels_a_finding_counts(conflict, levels):
    [rule] = [r for r in RULES if r.conflict is conflict]
    assert rule.levels == set(levels)
    for level in IsolationLevel:
        args = {"winner": WinningCommit(7), "changes_metadata": False, "path": ROOT}
        if level in levels:
            with pytest.raises(rule.error) as raised:
                check_conflicts({conflict: "f"}, level, **args)
            assert (raised.value.subject, raised.value.conflict) == ("f", conflict.value)
        else:
            check_conflicts({conflict: "f"}, level, **args)


def test_every_finding_has_one_rule():
    assert [rule.conflict for rule in RULES] == list(Conflict)


def test_one_base_class_catches_all():
    for rule in RULES:
        assert issubclass(rule.error, DeltaConcurrentModificationException)
        assert issubclass(rule.error, CommitError)
        assert rule.error.sql_state == "2D521"


def test_protocol_and_metadata():
    won = WinningCommit(7, protocol=Protocol(1, 2), metadata=Metadata("i"))
    assert table_conflicts(won, app_ids=frozenset(), domains=frozenset()).keys() == {
        Conflict.CHANGED_PROTOCOL,
        Conflict.CHANGED_METADATA,
    }


@pytest.mark.parametrize(
    ("p", "commit_info", "wanted"),
    [
        (1, {"isBlindAppend": True}, Conflict.APPENDED_WHERE_READ),
        (1, {"isBlindAppend": False}, Conflict.ADDED_WHERE_READ),
        (1, {}, Conflict.ADDED_WHERE_READ),  # who says nothing may have read
        (1, {"isBlindAppend": "true"}, Conflict.ADDED_WHERE_READ),
        (2, {}, None),
    ],
)
def test_added_files_that_match(p, commit_info, wanted):
    """One of several added files is enough for a conflict, wherever it stands."""
    adds = (add("y", 2), add("x", p), add("z", 2))
    found = findings_of(OPERATIONS["insert from itself"], adds=adds, commit_info=commit_info)
    assert found == ({} if wanted is None else {wanted: "x"})


def test_appends_count_for_who_changes_the_schema():
    """Whatever the level: they may not fit it."""
    found = findings_of(OPERATIONS["merge"], **APPENDED)
    args = {"winner": WinningCommit(7), "path": ROOT}
    check_conflicts(found, WRITE_SERIALIZABLE, changes_metadata=False, **args)
    with pytest.raises(ConcurrentAppendException):
        check_conflicts(found, WRITE_SERIALIZABLE, changes_metadata=True, **args)


@pytest.mark.parametrize("spelling", ["a", "file:/t/../t/a"])
def test_removed_files(spelling):
    vector = DeletionVectorDescriptor("u", "x", 1, 1, 1)
    case = OPERATIONS["delete p=1"]
    if spelling != "a":
        assert not findings_of(case, removes=(remove(spelling),))  # no path is guessed at
        return
    # A deletion vector is replaced by removing the file with the old one.
    for won in (remove(spelling), remove(spelling, vector=vector), remove(spelling, False)):
        found = findings_of(case, removes=(remove("other"), won))
        assert found == {Conflict.REMOVED_WHAT_WAS_READ: "a"}
    assert not findings_of(case, removes=(remove("b"),))


@pytest.mark.parametrize(
    ("files", "conflict"),
    [
        (ReadSet(), Conflict.REMOVED_WHAT_IS_REMOVED),
        (ReadSet(predicates=(where(1),)), Conflict.REMOVED_WHAT_WAS_READ),
    ],
)
def test_a_file_that_is_removed_twice(files, conflict):
    """A file that both writers remove is DELETE_READ if this one reads files."""
    case = Case(StagedActions(removes=(remove("a"),)), files)
    assert findings_of(case, removes=(remove("a"),)) == {conflict: "a"}


def test_who_reads_everything_reads_every_removed_file():
    assert findings_of(Case(StagedActions(), read(whole=True)), removes=(remove("x"),)) == {
        Conflict.REMOVED_WHAT_WAS_READ: "x"
    }


def test_who_leaves_rows_as_they_are_needs_every_file():
    """A MERGE does not insert a row that matches one which no clause changes, and must if the
    concurrent commit deleted that.
    """
    case = Case(StagedActions(), ReadSet((where(1),), leaves_rows=True))
    assert findings_of(case, removes=(remove("x"),)) == {Conflict.REMOVED_WHAT_WAS_READ: "x"}
    assert not findings_of(case, adds=(add("x", 2),))


@pytest.mark.parametrize(("app", "counts"), [("x", True), ("y", False)])
def test_applications(app, counts):
    won = WinningCommit(7, transactions=(TransactionIdentifier(app, 1),))
    found = table_conflicts(won, app_ids=frozenset("x"), domains=frozenset())
    assert (Conflict.ADVANCED_APPLICATION in found) == counts


@pytest.mark.parametrize(
    ("domain", "counts"), [("d", True), ("e", False), ("delta.rowTracking", False)]
)
def test_domains(domain, counts):
    """Row ids are assigned anew, so their mark is nothing to fight about."""
    won = WinningCommit(7, domains=(DomainMetadata(domain, "{}"),))
    found = table_conflicts(won, app_ids=frozenset(), domains=frozenset({"d", "delta.rowTracking"}))
    assert (Conflict.CHANGED_DOMAIN in found) == counts


@pytest.mark.parametrize("row_ids", [False, True])
def test_files_that_are_committed_again(row_ids):
    """The rows stay the same: only a transaction that read row ids has a conflict."""
    winner = WinningCommit(1, commit_info={"operation": UNBACKFILL}, adds=(add("a", 1, False),))
    found = file_conflicts(
        winner,
        read=ReadSet(whole_table=True, row_ids=row_ids),
        removes=frozenset(),
        partition_types=TYPES,
        table_root=ROOT,
    )
    assert found == ({Conflict.ADDED_WHERE_READ: "a"} if row_ids else {})


@pytest.mark.parametrize("only_rows", [False, True])
@pytest.mark.parametrize("data_change", [False, True])
def test_rows_that_were_moved(only_rows, data_change):
    """PROTOCOL.md#add-file-and-remove-file: without `dataChange`, the table has the same rows. They
    conflict with a transaction that removes their files, or read the files by name.
    """
    lines = map(action_line, (add("n", 1, data_change), remove("a", False)))
    actions = {name: [file] for line in lines for name, file in json.loads(line).items()}
    winner = WinningCommit.of(7, actions, path=ROOT)
    assert winner.moves_rows is not data_change

    def found(read, *removes):
        return file_conflicts(
            winner,
            read=read,
            removes=frozenset((name, None) for name in removes),
            partition_types=TYPES,
            table_root=ROOT,
        ).keys()

    added, read_again = Conflict.ADDED_WHERE_READ, Conflict.REMOVED_WHAT_WAS_READ
    reads = ReadSet((where(1),), leaves_rows=True, only_rows=only_rows)
    depends = not only_rows or data_change
    assert found(reads) == ({added, read_again} if depends else set())
    assert found(replace(reads, whole_table=True)) == ({added, read_again} if depends else set())
    assert found(replace(reads, row_ids=True)) >= {added}
    assert read_again in found(replace(reads, files=frozenset({("a", None)})))
    assert read_again in found(reads, "a")
    assert Conflict.REMOVED_WHAT_IS_REMOVED in found(ReadSet(only_rows=only_rows), "a")


@pytest.mark.parametrize("conflict", Conflict)
@pytest.mark.parametrize("moves_rows", [False, True])
def test_errors_tell_that_rows_were_only_moved(conflict, moves_rows):
    winner = WinningCommit(7, moves_rows=moves_rows)
    with pytest.raises(DeltaConcurrentModificationException) as raised:
        check_conflicts(
            {conflict: "f"}, SERIALIZABLE, winner=winner, changes_metadata=False, path=ROOT
        )
    is_of_files = conflict.name.startswith(("ADDED", "APPENDED", "REMOVED"))
    assert raised.value.only_moved_rows == (moves_rows and is_of_files)

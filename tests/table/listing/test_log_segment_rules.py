"""Every invariant of a segment, and every way in which a log can fail to have one."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.base.protocol.log_files import (
    LogFileKind,
    classic_checkpoint_name,
    commit_name,
    compaction_name,
    parse_log_file,
    version_checksum_name,
)
from sparkdelta.exceptions import (
    DeltaError,
    TableNotFoundError,
    TruncatedTransactionLogError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from sparkdelta.table.listing.log_segment_rules import (
    Checkpoint,
    LogSegment,
    commits_between,
    extend_log_segment,
    missing_commits,
    readable_commits,
    select_log_segment,
)
from tests.support.errors import raises

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def commits(*versions):
    return [commit_name(v) for v in versions]


def uuid_checkpoint(version, extension="parquet", uuid=UUID):
    return f"{version:020d}.checkpoint.{uuid}.{extension}"


def parts(version, count, *, missing=()):
    return [
        f"{version:020d}.checkpoint.{n:010d}.{count:010d}.parquet"
        for n in range(1, count + 1)
        if n not in missing
    ]


def files(*names):
    return [parse_log_file(name) for name in names]


def select(*names, **arguments):
    return select_log_segment(files(*names), path="/t", **arguments)


def names(log_files):
    return [file.name for file in log_files]


def checkpoint_names(segment):
    return None if segment.checkpoint is None else names(segment.checkpoint.files)


def test_the_example_of_the_protocol():
    segment = select(
        "00000000000000000042.json",
        "00000000000000000042.checkpoint.parquet",
        "00000000000000000043.json",
        "00000000000000000044.json",
        "00000000000000000045.json",
    )
    assert segment.version == 45
    assert checkpoint_names(segment) == ["00000000000000000042.checkpoint.parquet"]
    assert names(segment.deltas) == commits(43, 44, 45)
    assert names(segment.commits) == commits(42, 43, 44, 45)
    assert segment.version_checksum is None
    assert "deltas=3 (versions 43 to 45)" in repr(segment)


def test_commits_alone():
    segment = select(*commits(0, 1, 2), version_checksum_name(1), version_checksum_name(2))
    assert segment.checkpoint is None
    assert names(segment.deltas) == names(segment.commits) == commits(0, 1, 2)
    assert segment.version_checksum.name == version_checksum_name(2)


def test_the_order_of_the_listing_does_not_matter():
    listing = [*commits(*range(12)), compaction_name(3, 5), *parts(6, 3), uuid_checkpoint(6)]
    expected = select(*listing)
    for seed in range(5):
        random.Random(seed).shuffle(listing)
        assert select(*listing) == expected


def test_an_old_version_uses_no_newer_checkpoint():
    log = [*commits(*range(21)), classic_checkpoint_name(10), classic_checkpoint_name(20)]
    segment = select(*log, version=15)
    assert segment.version == 15
    assert checkpoint_names(segment) == [classic_checkpoint_name(10)]
    assert names(segment.deltas) == commits(*range(11, 16))
    assert names(segment.commits) == commits(*range(16))
    assert select(*log, version=9).checkpoint is None
    assert select(*log, version=20).deltas == ()


def test_a_checkpoint_without_any_commit_is_enough():
    segment = select(classic_checkpoint_name(2), version_checksum_name(2))
    assert (segment.version, segment.deltas, segment.commits) == (2, (), ())
    assert segment.version_checksum is not None


def test_a_checkpoint_may_be_newer_than_the_newest_commit():
    segment = select(*commits(0, 1, 2), classic_checkpoint_name(3))
    assert (segment.version, segment.deltas) == (3, ())
    assert names(segment.commits) == commits(0, 1, 2)


def test_incomplete_multi_part_checkpoints_are_ignored():
    log = [*commits(*range(4)), *parts(2, 3, missing={2})]
    assert select(*log).checkpoint is None
    assert checkpoint_names(select(*log, *parts(1, 2))) == parts(1, 2)


def test_parts_of_different_attempts_do_not_mix():
    mixed = [*parts(2, 3, missing={2}), *parts(2, 4, missing={1})]
    assert select(*commits(0, 1, 2), *mixed).checkpoint is None


def test_a_uuid_checkpoint_is_preferred_then_a_classic_one():
    log, multi = commits(0, 1, 2), parts(2, 2)
    classic, unique = classic_checkpoint_name(2), uuid_checkpoint(2, "json")
    everything = select(*log, *multi, classic, unique)
    assert everything.checkpoint.kind is LogFileKind.UUID_CHECKPOINT
    assert everything.checkpoint.is_json
    assert checkpoint_names(select(*log, *multi, classic)) == [classic]
    assert checkpoint_names(select(*log, *multi)) == multi
    without = select(*log, *multi, classic, unique, without={unique})
    assert checkpoint_names(without) == [classic]
    assert not without.checkpoint.is_json


def test_of_two_uuid_checkpoints_one_is_chosen_whatever_the_order():
    other = uuid_checkpoint(1, uuid="90a083e8-7026-4e79-81be-64bd76c43a11")
    first = select(*commits(0, 1), uuid_checkpoint(1), other)
    assert first == select(other, uuid_checkpoint(1), *commits(1, 0))


def test_a_compaction_replaces_its_commits():
    segment = select(*commits(*range(8)), compaction_name(4, 6))
    assert names(segment.deltas) == [*commits(0, 1, 2, 3), compaction_name(4, 6), *commits(7)]
    assert names(segment.commits) == commits(*range(8))


@pytest.mark.parametrize(
    ("compaction", "version"),
    [((4, 6), 5), ((2, 6), None), ((5, 9), None), ((3, 4), None)],
    ids=["beyond the version", "across the checkpoint", "beyond the latest", "at the checkpoint"],
)
def test_a_compaction_that_does_not_fit_is_not_used(compaction, version):
    log = [*commits(*range(8)), classic_checkpoint_name(3)]
    segment = select(*log, compaction_name(*compaction), version=version)
    assert names(segment.deltas) == commits(*range(4, segment.version + 1))


def test_the_widest_compactions_are_used():
    narrow = [compaction_name(0, 1), compaction_name(2, 3), compaction_name(1, 3)]
    segment = select(*commits(*range(6)), *narrow, compaction_name(0, 4))
    assert names(segment.deltas) == [compaction_name(0, 4), *commits(5)]


def test_overlapping_compactions_are_not_used_together():
    log = [*commits(*range(10)), compaction_name(0, 5), compaction_name(4, 9)]
    segment = select(*log)
    assert names(segment.deltas) == [compaction_name(0, 5), *commits(6, 7, 8, 9)]


def test_fewest_files_beats_the_widest_first_step():
    log = [*commits(*range(21)), compaction_name(0, 9), compaction_name(0, 4)]
    segment = select(*log, compaction_name(5, 20))
    assert names(segment.deltas) == [compaction_name(0, 4), compaction_name(5, 20)]


def test_a_broken_compaction_is_left_out():
    log = [*commits(*range(8)), compaction_name(4, 6)]
    assert names(select(*log, without=[compaction_name(4, 6)]).deltas) == commits(*range(8))


def test_a_broken_compaction_whose_commits_are_gone_is_an_error():
    log = [*commits(0, 1, 2, 3, 7), compaction_name(4, 6)]
    assert select(*log).version == 7
    with pytest.raises(VersionsNotContiguousError) as caught:
        select(*log, without=[compaction_name(4, 6)])
    assert (caught.value.start, caught.value.end, caught.value.version_to_load) == (3, 7, 7)


def test_commits_are_never_left_out():
    assert names(select(*commits(0, 1), without=commits(1)).deltas) == commits(0, 1)


def test_only_the_checksum_of_the_version_itself():
    log = [*commits(0, 1, 2), version_checksum_name(0), version_checksum_name(2)]
    assert select(*log, version=1).version_checksum is None
    assert select(*log, version=0).version_checksum.version == 0


@pytest.mark.parametrize("log", [[], [version_checksum_name(0)]])
def test_no_table(log):
    with pytest.raises(TableNotFoundError) as caught:
        select(*log)
    assert caught.value.path == "/t"


@pytest.mark.parametrize(
    ("log", "version"),
    [
        (commits(1, 2), None),
        (commits(1, 2), 0),
        ([*commits(3, 4), *parts(3, 2, missing={1})], None),
        ([compaction_name(1, 3)], None),
    ],
)
def test_truncated(log, version):
    with pytest.raises(TruncatedTransactionLogError):
        select(*log, version=version)


def test_nothing_but_broken_checkpoints():
    with pytest.raises(TruncatedTransactionLogError):
        select(classic_checkpoint_name(3), without=[classic_checkpoint_name(3)])


def test_nothing_but_parts_of_a_checkpoint():
    with raises("DELTA_MISSING_PART_FILES") as caught:
        select(*parts(4, 3, missing={3}))
    assert caught.value.version == 4


def test_a_gap():
    with pytest.raises(VersionsNotContiguousError) as caught:
        select(*commits(0, 1, 3))
    error = caught.value
    assert (error.versions, error.start, error.end, error.version_to_load) == ([0, 1, 3], 1, 3, 3)


def test_a_gap_matters_only_where_it_is_needed():
    log = [*commits(0, 1, 3, 5), classic_checkpoint_name(4)]
    assert select(*log).version == 5
    assert select(*log, version=1).version == 1
    for version in (2, 3):
        with pytest.raises(VersionsNotContiguousError):
            select(*log, version=version)


def test_a_gap_right_after_the_checkpoint():
    with pytest.raises(VersionsNotContiguousError) as caught:
        select(*commits(0, 1, 3), classic_checkpoint_name(1))
    assert (caught.value.start, caught.value.end) == (1, 3)


@pytest.mark.parametrize("version", [-1, 3, 6, 99])
def test_versions_that_do_not_exist(version):
    log = [*commits(3, 4, 5), classic_checkpoint_name(4)]
    with pytest.raises(VersionNotFoundError) as caught:
        select(*log, version=version)
    assert (caught.value.version, caught.value.earliest, caught.value.latest) == (version, 4, 5)


def test_extending_reads_on():
    segment = select(*commits(0, 1, 2), compaction_name(0, 1))
    new = files(*commits(2, 3, 4), compaction_name(3, 4), version_checksum_name(4))
    longer = extend_log_segment(segment, new, path="/t")
    assert names(longer.deltas) == [compaction_name(0, 1), *commits(2, 3, 4)]
    assert names(longer.commits) == commits(0, 1, 2, 3, 4)
    assert (longer.version, longer.version_checksum.version) == (4, 4)
    assert extend_log_segment(segment, files(*commits(2)), path="/t") is segment
    with pytest.raises(VersionsNotContiguousError):
        extend_log_segment(segment, files(*commits(4)), path="/t")


def test_readable_commits():
    log = [*commits(2, 3, 4, 5), classic_checkpoint_name(4), compaction_name(2, 3)]
    assert names(readable_commits(files(*log), path="/t")) == commits(4, 5)
    assert names(readable_commits(files(*commits(0, 1)), path="/t")) == commits(0, 1)
    # A cleanup that was cut short left commit 0; compaction (2, 3) leads to commit 4.
    log = [*commits(0, 4, 5, 6), classic_checkpoint_name(5)]
    assert names(readable_commits(files(*log), path="/t")) == commits(5, 6)
    log = [*commits(0, 4, 5), classic_checkpoint_name(1), compaction_name(2, 3)]
    assert names(readable_commits(files(*log), path="/t")) == commits(4, 5)
    assert readable_commits(files(classic_checkpoint_name(5)), path="/t") == []
    with pytest.raises(TruncatedTransactionLogError):
        readable_commits(files(*commits(1)), path="/t")


def test_commits_between():
    """PROTOCOL.md#delta-log-entries"""
    log = [*commits(5, 2, 3, 4, 6, 8), classic_checkpoint_name(4), compaction_name(2, 4)]
    assert names(commits_between(files(*log), 3, 5, path="/t")) == commits(3, 4, 5)
    with pytest.raises(VersionsNotContiguousError) as raised:
        commits_between(files(*log), 5, 8, path="/t")
    assert (raised.value.start, raised.value.end) == (6, 8)


def _checkpoint(*log):
    return Checkpoint(version=2, files=tuple(files(*log)))


@pytest.mark.parametrize(
    "log",
    [
        [],
        commits(2),
        [classic_checkpoint_name(3)],
        [classic_checkpoint_name(2), uuid_checkpoint(2)],
        [uuid_checkpoint(2), uuid_checkpoint(2, "json")],
        parts(2, 3, missing={3}),
        parts(2, 2)[::-1],
    ],
)
def test_an_impossible_checkpoint_cannot_be_made(log):
    with pytest.raises(ValueError, match="not a log segment"):
        _checkpoint(*log)


GOOD = LogSegment(
    version=4,
    checkpoint=_checkpoint(classic_checkpoint_name(2)),
    deltas=tuple(files(*commits(3, 4))),
    commits=tuple(files(*commits(2, 3, 4))),
    version_checksum=files(version_checksum_name(4))[0],
)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 5},
        {"version": 1, "deltas": (), "version_checksum": None, "commits": ()},
        {"checkpoint": None},
        {"checkpoint": None, "deltas": (), "version": -1},
        {"deltas": tuple(files(*commits(4)))},
        {"deltas": tuple(files(*commits(3)))},
        {"deltas": tuple(files(*commits(4, 3)))},
        {"deltas": tuple(files(*commits(3, 3, 4)))},
        {"deltas": tuple(files(*commits(3), compaction_name(3, 4)))},
        {"deltas": tuple(files(*commits(3), classic_checkpoint_name(4)))},
        {"commits": tuple(files(*commits(3)))},
        {"commits": tuple(files(*commits(4, 3)))},
        {"commits": tuple(files(*commits(3, 4, 4)))},
        {"commits": tuple(files(*commits(3, 4, 5)))},
        {"commits": tuple(files(*commits(3, 4), compaction_name(5, 6)))},
        {"version_checksum": files(version_checksum_name(3))[0]},
        {"version_checksum": files(commit_name(4))[0]},
    ],
)
def test_a_segment_that_breaks_an_invariant_cannot_be_made(change):
    with pytest.raises(ValueError, match="not a log segment"):
        replace(GOOD, **change)


@st.composite
def listings(draw):
    top = draw(st.integers(0, 12))
    version = st.integers(0, top)
    log = commits(*draw(st.sets(version, min_size=top // 2)))
    log += [classic_checkpoint_name(v) for v in draw(st.sets(version, max_size=2))]
    for v in draw(st.sets(version, max_size=2)):
        log += parts(v, 3, missing=draw(st.sets(st.integers(1, 3), max_size=1)))
    for start, end in draw(st.sets(st.tuples(version, version), max_size=4)):
        if start < end:
            log.append(compaction_name(start, end))
    return log, draw(st.none() | st.integers(0, top + 1))


@given(listings())
def test_a_segment_is_right_or_refused(listing):
    log, version = listing
    try:
        segment = select(*log, version=version)
    except DeltaError:
        return
    covered = [
        v
        for file in segment.deltas
        for v in range(file.version, (file.end_version or file.version) + 1)
    ]
    start = -1 if segment.checkpoint is None else segment.checkpoint.version
    assert covered == list(range(start + 1, segment.version + 1))
    assert version in (None, segment.version)
    complete = [
        file.version
        for file in files(*log)
        if file.kind is LogFileKind.CLASSIC_CHECKPOINT and file.version <= segment.version
    ]
    assert start >= max(complete, default=-1)


@pytest.mark.parametrize(
    ("names_", "gaps"),
    [
        (commits(0, 1, 2), []),
        (commits(0, 2, 3, 6), [(1, 1), (4, 5)]),
        ([classic_checkpoint_name(3), *commits(4, 5)], []),
        ([classic_checkpoint_name(3), *commits(5)], [(4, 4)]),
        ([classic_checkpoint_name(3), *commits(1, 2, 4)], []),
        ([classic_checkpoint_name(3), *commits(0, 1, 2)], [(3, 3)]),
        ([classic_checkpoint_name(3)], []),
        ([compaction_name(0, 2), *commits(3), classic_checkpoint_name(2)], []),
    ],
)
def test_gaps_among_the_commits(names_, gaps):
    """PROTOCOL.md#delta-log-entries-1, PROTOCOL.md#metadata-cleanup"""
    assert missing_commits(files(*names_)) == gaps

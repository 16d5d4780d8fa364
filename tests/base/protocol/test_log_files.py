"""The names of PROTOCOL.md, verbatim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.base.protocol.log_files import (
    LogFileKind,
    classic_checkpoint_name,
    commit_name,
    compaction_name,
    is_staging_directory,
    listing_prefix,
    parse_log_file,
    staging_directory,
    version_checksum_name,
)

versions = st.integers(0, 2**63 - 1)


@pytest.mark.parametrize(
    ("name", "kind", "version"),
    [
        ("00000000000000000000.json", LogFileKind.COMMIT, 0),
        ("00000000000000000042.json", LogFileKind.COMMIT, 42),
        ("00000000000000000042.checkpoint.parquet", LogFileKind.CLASSIC_CHECKPOINT, 42),
        ("00000000000000000010.checkpoint.parquet", LogFileKind.CLASSIC_CHECKPOINT, 10),
        ("00000000000000000001.crc", LogFileKind.VERSION_CHECKSUM, 1),
        ("09223372036854775807.json", LogFileKind.COMMIT, 2**63 - 1),
    ],
)
def test_plain_names(name, kind, version):
    file = parse_log_file(name, size_bytes=5, modification_time_ms=7)
    assert (file.name, file.kind, file.version) == (name, kind, version)
    assert (file.size_bytes, file.modification_time_ms) == (5, 7)
    assert (file.end_version, file.part, file.num_parts, file.uuid) == (None,) * 4


@pytest.mark.parametrize("part", [1, 2, 3])
def test_multi_part_checkpoint(part):
    file = parse_log_file(f"00000000000000000010.checkpoint.000000000{part}.0000000003.parquet")
    assert file.kind is LogFileKind.MULTI_PART_CHECKPOINT
    assert (file.version, file.part, file.num_parts, file.extension) == (10, part, 3, "parquet")


@pytest.mark.parametrize(
    ("name", "version", "extension"),
    [
        ("00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", 10, "json"),
        (
            "00000000000000000020.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet",
            20,
            "parquet",
        ),
        ("00000000000000000112.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", 112, "json"),
    ],
)
def test_uuid_checkpoint(name, version, extension):
    file = parse_log_file(name)
    assert file.kind is LogFileKind.UUID_CHECKPOINT
    assert (file.version, file.extension) == (version, extension)
    assert file.uuid == "80a083e8-7026-4e79-81be-64bd76c43a11"


def test_compaction():
    file = parse_log_file("00000000000000000004.00000000000000000006.compacted.json")
    assert (file.kind, file.version, file.end_version) == (LogFileKind.COMPACTION, 4, 6)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "_last_checkpoint",
        "_sidecars",
        "_staged_commits",
        "0.json",
        "0000000000000000000.json",
        "000000000000000000000.json",
        "00000000000000000000.JSON",
        "00000000000000000000.json.tmp",
        "00000000000000000000.json\n",
        ".00000000000000000000.json.crc",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠.json",
        "99999999999999999999.json",
        "09223372036854775808.json",
        "00000000000000000000.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
        "00000000000000000010.checkpoint.json",
        "00000000000000000010.checkpoint.not-a-uuid.json",
        "00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.crc",
        "00000000000000000010.checkpoint.0000000000.0000000003.parquet",
        "00000000000000000010.checkpoint.0000000004.0000000003.parquet",
        "00000000000000000010.checkpoint.1.3.parquet",
        "00000000000000000006.00000000000000000006.compacted.json",
        "00000000000000000006.00000000000000000004.compacted.json",
        "_sidecars/016ae953-37a9-438e-8683-9a9a4a79a395.parquet",
    ],
)
def test_foreign_names_are_no_error(name):
    assert parse_log_file(name) is None


@given(versions)
def test_names_are_read_back(version):
    named = {
        commit_name(version): LogFileKind.COMMIT,
        classic_checkpoint_name(version): LogFileKind.CLASSIC_CHECKPOINT,
        version_checksum_name(version): LogFileKind.VERSION_CHECKSUM,
    }
    for name, kind in named.items():
        file = parse_log_file(name)
        assert (file.kind, file.version) == (kind, version)


@given(st.tuples(versions, versions).filter(lambda pair: pair[0] < pair[1]))
def test_compaction_names_are_read_back(pair):
    file = parse_log_file(compaction_name(*pair))
    assert (file.version, file.end_version) == pair


@given(versions, versions)
def test_a_listing_from_the_prefix_has_the_version_and_later_ones(version, other):
    for name in (commit_name, classic_checkpoint_name, version_checksum_name):
        assert (name(other) >= listing_prefix(version)) == (other >= version)


def test_staging_directories():
    name = staging_directory("3a0d65cd-4056-49b8-937b-95f9e3ee90e5")
    assert name == ".sparkdelta-3a0d65cd-4056-49b8-937b-95f9e3ee90e5"
    assert is_staging_directory(name)
    assert parse_log_file(name) is None
    for other in ("_sidecars", name[:-1], name + "/x", name.replace(".", "_", 1), name + "\n", ""):
        assert not is_staging_directory(other)
    with pytest.raises(AssertionError):
        staging_directory("../x")

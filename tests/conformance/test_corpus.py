"""A test that is skipped without the corpus, with the reason; the others have no cases then."""

from __future__ import annotations

import pytest

from tests.support.corpus import corpus_or_skip

pytestmark = pytest.mark.conformance


def test_corpus_is_at_hand() -> None:
    assert (corpus_or_skip() / "workloads.tar.xz").is_file()

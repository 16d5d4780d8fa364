"""A plugin of pytest for dbt-spark's functional tests: a profile whose session has Delta tables.

With a profile of another name than theirs, none of the tests is left out.
"""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> object:
    """Set the target of the profile in place of the tests' own fixture."""
    if fixturedef.argname != "dbt_profile_target":
        return None
    target = {"type": "spark", "method": "session", "host": "localhost"}
    fixturedef.cached_result = (target, fixturedef.cache_key(request), None)
    return target

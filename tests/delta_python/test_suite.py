"""delta-spark's own Python tests, run against this library: each has the outcome that is expected.

The tests are found by ``DELTA_PYTHON_TESTS``, else at ``../shared/delta-python-tests``; they import
the package ``delta`` of this folder. They run in a process of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.delta_python.expected import FAILS

pytestmark = pytest.mark.oracle
VARIABLE = "DELTA_PYTHON_TESTS"
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_OUTCOME = re.compile(
    r"^(PASSED|FAILED|ERROR|SKIPPED)\s+\S*?(?:::)?(\w+)::(test_\w+)", re.MULTILINE
)


def _suite() -> Path:
    """The folder of delta-spark's tests; skips where there is none."""
    named = os.environ.get(VARIABLE)
    suite = Path(named) if named else ROOT.parent / "shared" / "delta-python-tests"
    if not (suite / "tests" / "test_deltatable.py").is_file():
        assert named is None, f"{VARIABLE}={named} holds no tests"
        pytest.skip(f"delta-spark's tests not found; set {VARIABLE} to their directory")
    return suite.resolve()


def test_delta_sparks_own_tests(tmp_path: Path) -> None:
    """Every test passes but those that are listed with a reason, and these fail."""
    paths = [str(HERE), str(ROOT)]
    result = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-rA", "-q", "--tb=line", "-p", "no:cacheprovider",
            "-c", os.devnull, f"--rootdir={tmp_path}", "--import-mode=importlib",
            *(str(_suite() / "tests" / name) for name in ("test_deltatable.py", "test_sql.py")),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    outcomes = {name: outcome for outcome, _, name in _OUTCOME.findall(result.stdout)}
    own = {name: outcome for name, outcome in outcomes.items() if name not in _PYSPARKS}
    assert len(own) == 48, result.stdout[-3000:] + result.stderr[-3000:]
    failed = {name for name, outcome in own.items() if outcome != "PASSED"}
    assert failed == FAILS.keys(), f"{sorted(failed ^ FAILS.keys())}\n{result.stdout[-9000:]}"


_PYSPARKS = {
    "test_assert_classic_mode", "test_assert_remote_mode", "test_mixin",
}  # fmt: skip
"""Tests of PySpark's base classes."""

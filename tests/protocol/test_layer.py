"""The layer imports neither Spark nor anything above it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import importlib, pkgutil, sys, types

# The package's own __init__ offers the whole engine; the layer has to do without.
parent = types.ModuleType("sparkdelta")
parent.__path__ = [sys.argv[1] + "/sparkdelta"]
sys.modules["sparkdelta"] = parent

protocol = importlib.import_module("sparkdelta.protocol")
names = [module.name for module in pkgutil.iter_modules(protocol.__path__)]
for name in names:
    importlib.import_module(f"sparkdelta.protocol.{name}")
print(len(names))
forbidden = ("pyspark", "pandas", "pyarrow", "py4j")
print(sorted(name for name in sys.modules if name.split(".")[0] in forbidden))
ours = (name for name in sys.modules if name.startswith("sparkdelta."))
print(sorted({name.split(".")[1] for name in ours}))
"""


def test_the_layer_alone():
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    count, forbidden, ours = result.stdout.splitlines()
    assert int(count) >= 12
    assert forbidden == "[]"
    assert ours == "['error_conditions', 'exceptions', 'protocol']"

"""Rules are plain Python: they import neither Spark nor anything but rules."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

PROGRAM = """
import importlib, pathlib, sys, types

# The package's own __init__ offers the whole engine; rules have to do without.
parent = types.ModuleType("sparkdelta")
parent.__path__ = [sys.argv[1] + "/sparkdelta"]
sys.modules["sparkdelta"] = parent

# Of PySpark, errors need its exceptions, and nothing else may be imported.
errors = types.ModuleType("pyspark.errors")
errors.PySparkException = type("PySparkException", (Exception,), {})
sys.modules["pyspark"] = pyspark = types.ModuleType("pyspark")
sys.modules["pyspark.errors"] = pyspark.errors = errors

root = pathlib.Path(sys.argv[1])
protocol = (root / "sparkdelta/base/protocol").glob("[a-z]*.py")
rules = [*protocol, *(root / "sparkdelta").rglob("*_rules.py")]
for path in rules:
    importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))
print(len(rules))
forbidden = ("pyspark", "pandas", "pyarrow", "py4j")
loaded = sys.modules.keys() - {"pyspark", "pyspark.errors"}
print(sorted(name for name in loaded if name.split(".")[0] in forbidden))
modules = (name for name, module in sys.modules.items() if not hasattr(module, "__path__"))
ours = {name for name in modules if name.startswith("sparkdelta.")}
allowed = ("sparkdelta.base.protocol.", "sparkdelta.exceptions", "sparkdelta.error_")
print(sorted(n for n in ours if not n.startswith(allowed) and not n.endswith("_rules")))
"""


def test_rules_import_only_rules():
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    count, forbidden, others = result.stdout.splitlines()
    assert int(count) >= 50
    assert forbidden == "[]"
    assert others == "[]"

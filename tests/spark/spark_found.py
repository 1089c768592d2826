"""Whether this machine has what the tests of kons.spark need."""

import importlib.util
import os
import shutil

#: Seconds until somebody counts as stuck: a busy machine is slow, and a dead one silent.
PATIENCE = 600


def reason():
    for name in ("pyspark", "pandas", "pyarrow"):
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed; make test-spark has an environment of its own"
    return "" if shutil.which("java") or "JAVA_HOME" in os.environ else "no Java was found"


REASON = reason()

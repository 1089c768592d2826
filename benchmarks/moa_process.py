"""A forest of CapyMOA over one stream, in a Python that has it: ``moa_forests`` starts this file by its path.

::

    python -I moa_process.py                       prints the version of CapyMOA
    python -I moa_process.py ROWS.npz SAID.npz     X, y, task and forest in; prediction and CPU seconds out

Neither kons nor anything else of the benchmarks can be imported here. Ten trees: as many as River's forests
have; CapyMOA's own default is 100. What a forest cannot say yet is NaN. The virtual machine of Java lives in
this process, so that the CPU time is that of its compiler and garbage collector too, its start is not in it.
"""

from __future__ import annotations

import os
import sys
import time

# Read when capymoa is imported.
os.environ["CAPYMOA_JVM_ARGS"] = "-Xmx2g -XX:+UseSerialGC"
TREES = 10


def main() -> None:
    import capymoa
    import numpy as np
    from capymoa.classifier import AdaptiveRandomForestClassifier, StreamingRandomPatches
    from capymoa.evaluation import prequential_evaluation
    from capymoa.regressor import SOKNL, AdaptiveRandomForestRegressor
    from capymoa.stream import NumpyStream

    if len(sys.argv) == 1:
        print(capymoa.__version__)
        return
    forests = {
        ("classification", "SRP"): StreamingRandomPatches,
        ("classification", "ARF"): AdaptiveRandomForestClassifier,
        ("regression", "SOKNL"): SOKNL,
        ("regression", "ARF"): AdaptiveRandomForestRegressor,
    }
    given = np.load(sys.argv[1], allow_pickle=False)
    task, forest = str(given["task"]), str(given["forest"])
    kind = "categorical" if task == "classification" else "numeric"
    stream = NumpyStream(given["X"], given["y"], target_type=kind)
    start = time.process_time()
    learner = forests[task, forest](schema=stream.get_schema(), ensemble_size=TREES)
    found = prequential_evaluation(stream, learner, store_predictions=True)
    seconds = time.process_time() - start
    said = [np.nan if value is None else float(value) for value in found.predictions()]
    np.savez(sys.argv[2], prediction=np.array(said), seconds=seconds)


if __name__ == "__main__":
    main()

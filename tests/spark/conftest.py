"""A real standalone cluster on loopback: a master and two workers, each a process, and a driver's session."""

import os
import socket
import subprocess
import sys
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
from spark_found import PATIENCE, REASON

collect_ignore = ["query.py"]  # a driver, not a module with doctests
if REASON:
    collect_ignore += ["test_spark.py"]
if REASON or not os.environ.get("KONS_SPARK"):  # `make test` has a minute for it
    collect_ignore += ["test_faults.py", "test_long.py", "test_parts.py", "test_run.py"]
#: A variable of the environment of all processes of a cluster.
MARK = "KONS_TEST_CLUSTER"
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Old versions of the state: by default 100 are kept, and looked for once a minute.
    "spark.sql.streaming.minBatchesToRetain": "5",
    "spark.sql.streaming.stateStore.maintenanceInterval": "2s",
}


class Daemon:
    """A process of Spark's, whose log is read for as long as it runs."""

    def __init__(self, name, arguments, environment, wanted, times=1):
        import pyspark

        home = Path(pyspark.__file__).parent
        self.process = subprocess.Popen(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | {"SPARK_HOME": str(home)},
        )
        self.ready, self.log = Event(), []
        self.reader = Thread(target=self._read, args=(wanted, times), daemon=True)
        self.reader.start()

    def _read(self, wanted, times):
        for line in self.process.stderr:
            self.log.append(line)
            times -= wanted in line
            if times == 0:
                self.ready.set()

    def wait(self):
        assert self.ready.wait(PATIENCE), "".join(self.log[-50:])

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.reader.join()
        self.process.stderr.close()


class Cluster:
    def __init__(self, folder):
        self.folder, self.mark = folder, uuid.uuid4().hex
        self.environment = os.environ | {
            MARK: self.mark,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "OPENBLAS_NUM_THREADS": "1",
        }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        at = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        self.master = Daemon("master.Master", at, self.environment, "Registering worker", 2)
        self.workers = [self.start_worker(i) for i in range(2)]
        try:
            self.master.wait()
        except BaseException:
            self.stop()
            raise

    def start_worker(self, i):
        given = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "700m"]
        folder = ["--work-dir", str(self.folder / f"worker{i}")]
        return Daemon(
            "worker.Worker", [*given, *folder, self.url], self.environment, "Successfully registered"
        )

    def stop(self):
        for daemon in (*self.workers, self.master):
            daemon.stop()
        assert not self.others()

    def others(self):
        """What was started by anybody in this cluster, drivers included, and is there beside its daemons.

        A process knows whose it is by its environment, which it keeps where its parent was killed.
        """
        own = {daemon.process.pid for daemon in (*self.workers, self.master)}
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):  # it ended meanwhile
                lost = process.pid not in own and process.ppid() != os.getpid()  # the session's own JVM
                if lost and process.environ().get(MARK) == self.mark:
                    found.append(process)
        return psutil.wait_procs(found, timeout=PATIENCE)[1]


@contextmanager
def session(master):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("kons")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def spark(cluster):
    before = dict(os.environ)
    os.environ.update(cluster.environment)
    with session(cluster.url) as spark:
        yield spark
    os.environ.clear()
    os.environ.update(before)
